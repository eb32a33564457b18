// The entry of a page that was saved as one file: the Inside view over what the file holds. Nothing is fetched.

import { html, render, useEffect, useState } from "./vendor/htm-preact.js";
import { readAddress } from "./router.js";
import { Inside } from "./views/inside.js";
import { savedIn } from "./views/inside/data.js";

const kept = JSON.parse(document.getElementById("kept").textContent);
const data = savedIn(kept);
const values = () => ({ ...kept.state, ...(location.hash ? readAddress().values : {}), changes: kept.seen.changes.join(",") });

function Saved() {
  const [shown, setShown] = useState(values);
  useEffect(() => {
    const changed = () => setShown(values());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return html`<header class="bar"><div class="name">Dragoman</div></header>
    <main><${Inside} about=${null} data=${data} values=${shown} /></main>
    <footer class="foot">Saved from Dragoman. This file loads nothing.</footer>`;
}

render(html`<${Saved} />`, document.getElementById("app"));
