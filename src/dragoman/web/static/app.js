// The shell: the name, the views' tabs, the theme; the view that the address names is put inside.

import { html, render, useEffect, useState } from "./vendor/htm-preact.js";
import { service } from "./api.js";
import { readAddress, tabAddress } from "./router.js";
import { views, viewsFor } from "./views.js";

const THEMES = { auto: "as the system", light: "light", dark: "dark" };

function readTheme() {
  try {
    return localStorage.getItem("dragoman-theme") ?? "auto";
  } catch {
    return "auto"; // storage is switched off
  }
}

function ThemeButton() {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("dragoman-theme", theme);
    } catch {
      // it lasts until the page is closed
    }
  }, [theme]);
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(theme) + 1) % names.length];
  return html`<button type="button" class="quiet" onClick=${() => setTheme(next)}
    aria-label=${`Colours: ${THEMES[theme]}. Change to ${THEMES[next]}`} title=${`Colours: ${THEMES[theme]}`}>
    <span class=${`theme-icon ${theme}`} aria-hidden="true"></span>
  </button>`;
}

function Tabs({ offered, current }) {
  return html`<nav aria-label="Views">
    ${offered.map(({ id, title }) => html`<a key=${id} href=${`#/${id}`} aria-current=${id === current ? "page" : undefined}
      onClick=${(event) => { event.currentTarget.href = tabAddress(id); }}>${title}</a>`)}
  </nav>`;
}

function Shell() {
  const [address, setAddress] = useState(readAddress);
  const [offered, setOffered] = useState([]);
  useEffect(() => { // where the service says nothing of itself, the view tells why
    service().then((about) => setOffered(viewsFor(about)), () => setOffered(viewsFor({})));
  }, []);
  useEffect(() => {
    const changed = () => setAddress(readAddress());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const view = views.find(({ id }) => id === address.view) ?? offered[0];
  useEffect(() => { document.title = view ? `${view.title} · Dragoman` : "Dragoman"; }, [view]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>
      To the content
    </a>
    <header class="bar">
      <div class="name"><img src="/web/icon.svg" alt="" width="28" height="28" />Dragoman</div>
      <${Tabs} offered=${offered} current=${view?.id} />
      <${ThemeButton} />
    </header>
    <main id="main" tabindex="-1">${view && html`<${view.View} key=${view.id} values=${address.values} />`}</main>
    <footer class="foot">Your text goes to this service and nowhere else. Nothing on this page comes from elsewhere.</footer>
  `;
}

service().catch(() => {}); // before the first frame; those who ask in it share the answer
render(html`<${Shell} />`, document.getElementById("app"));
