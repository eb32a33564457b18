// What the lab measured of a lesson's claim, word for word as its report has it.

import { html } from "../../vendor/htm-preact.js";
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
  return html`<ul class="findings">${FINDINGS[of].findings.map(({ claim, verdict, because }) => html`<li key=${claim}>
    <b class=${`verdict ${verdict === "holds" ? "yes" : ""}`}>${verdict}</b> ${claim} <span class="small">${because}</span></li>`)}</ul>`;
}
