// What went wrong, where it belongs, and what can be done: a key to be given, or another try.

import { html, useState } from "../vendor/htm-preact.js";
import { key } from "../api.js";

// `waits`: whoever shows it tries again by itself when the service was busy.
export function Failure({ problem, retry, waits = true }) {
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
  const again = waits && (problem.status === 503 || problem.status === 429);
  return html`<p class="problem" role="alert">
    ${problem.message} ${again ? `It is tried again in ${problem.retryAfter || 2} s.` : ""}
    <button type="button" onClick=${retry}>Try again</button>
  </p>`;
}
