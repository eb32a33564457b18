// What should worry one, newest first.

import { html } from "../../vendor/htm-preact.js";
import { whole } from "../numbers.js";

const NAMES = {
  skipped: "Step skipped", setback: "Went back", memory: "Out of memory",
  divergence: "The loss diverges", overfitting: "Overfitting", gap: "The gap widens", plateau: "No progress",
  standstill: "The loss stands still", leak: "Too good to be true",
};

export function Alerts({ alerts }) {
  const told = alerts.slice(-8).reverse();
  return html`<div role="log" aria-label="Alerts" class=${alerts.length ? "sheet alerts" : ""}>
    ${told.length > 0 && html`<ul>${told.map(({ kind, step, text }) => html`<li key=${`${kind}${step}`} data-kind=${kind}>
      <b>${NAMES[kind] ?? kind}</b> at step ${whole(step)}: ${text}.</li>`)}</ul>`}
    ${alerts.length > told.length && html`<p class="note">${whole(alerts.length - told.length)} earlier ones are in the run’s metrics.jsonl.</p>`}
  </div>`;
}
