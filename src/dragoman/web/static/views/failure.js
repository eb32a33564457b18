// What went wrong, where it belongs, and what can be done: a key to be given, or another try.

import { html, useState } from "../vendor/htm-preact.js";
import { key } from "../api.js";

// `wait`: in so many seconds whoever shows it tries again by itself; 0: it does so now; null: it does not.
export function Failure({ problem, retry, wait = null, children }) {
  const [given, setGiven] = useState("");
  if (/\bkey\.$/.test(problem.message)) { // one is asked for, or it is not known
    const save = (event) => {
      event.preventDefault();
      key.set(given.trim());
      retry();
    };
    return html`<form class="problem" role="alert" onSubmit=${save}>
      <label>${problem.message} <input type="password" autocomplete="off" value=${given} onInput=${(event) => setGiven(event.target.value)} /></label>
      <button type="submit">Use it</button>
    </form>`;
  }
  return html`<p class="problem" role="alert">
    ${problem.message} <span aria-live="off">${wait ? `It is tried again in ${wait} s.` : wait === 0 ? "It is being tried again …" : ""}</span>
    ${" "}${children} <button type="button" onClick=${retry}>Try again</button>
  </p>`;
}
