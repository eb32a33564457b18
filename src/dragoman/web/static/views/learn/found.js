// What the lab measured of a lesson's claim, word for word as its report has it.

import { html } from "../../vendor/htm-preact.js";
import { short } from "../numbers.js";
import { FINDINGS } from "./findings.js";

export function Found({ of, notes = false, open = false }) {
  const found = FINDINGS[of];
  return html`<details class="found" open=${open}><summary>What the lab found: ${found.title}</summary>
    <${Findings} of=${of} />
    ${notes && found.notes.map((note) => html`<p key=${note}>${note}</p>`)}
    <p class="small">Small models, minutes of training; the lab’s report has the method and the rule: docs/lab/report.md, “${of}”.</p>
  </details>`;
}

export function Findings({ of }) {
  return html`<p class="small">${FINDINGS[of].headline}</p>
    <ul class="findings">${FINDINGS[of].findings.map(({ claim, verdict, because, ...effect }) => html`<li key=${claim}>
    <b class=${`verdict ${verdict === "holds" ? "yes" : ""}`}>${verdict}</b> ${claim} <span class="small">${because}${inWords(effect)}</span></li>`)}</ul>`;
}

// How large it is, with the interval that 95 of 100 such intervals would hold it in.
function inWords({ effect, low, high, unit }) {
  if (effect == null) return "";
  const within = low == null || low === high ? "" : ` (95 %: ${short(low)} to ${short(high)})`;
  return `; effect ${short(effect)} ${unit}${within}`;
}
