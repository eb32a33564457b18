// An experiment's result: what was claimed, what was found, its arms as a table and its figures.

import { html } from "../../vendor/htm-preact.js";
import { Chart } from "../../chart.js";
import { short } from "../numbers.js";

const plain = (value) => value !== null && typeof value !== "object";
const shown = (value) => (typeof value === "number" ? (Number.isInteger(value) ? value.toLocaleString("en") : short(value)) : String(value));

export function Experiment({ content }) {
  const { experiment, claim, verdict, arms, figures } = content;
  // A column for everything plain that any arm has, in the order in which it first comes.
  const columns = [...new Set(arms.flatMap((arm) => Object.keys(arm).filter((name) => plain(arm[name]))))];
  return html`
    <section class="sheet study experiment" aria-label="Experiment">
      <header><h2>${experiment}</h2></header>
      ${plain(claim) && claim !== undefined && html`<p><b>Claim:</b> ${claim}</p>`}
      ${plain(verdict) && verdict !== undefined && html`<p><b>Verdict:</b> ${verdict}</p>`}
      ${arms.length > 0 && html`<div class="scroll" role="region" tabindex="0" aria-label="Arms"><table>
        <thead><tr>${columns.map((name) => html`<th scope="col" key=${name}>${name.replaceAll("_", " ")}</th>`)}</tr></thead>
        <tbody>${arms.map((arm, at) => html`<tr key=${at}>${columns.map((name) => html`<td key=${name} class=${typeof arm[name] === "number" ? "number" : ""}>
          ${plain(arm[name]) && arm[name] !== undefined ? shown(arm[name]) : ""}</td>`)}</tr>`)}</tbody>
      </table></div>`}
    </section>
    ${figures.length > 0 && html`<section class="sheet study" aria-label="Figures">
      <header><h2>Figures</h2></header>
      <div class="charts">${figures.map((figure, at) => html`<${Figure} key=${at} figure=${figure} />`)}</div>
    </section>`}`;
}

// {"title", "x": [...], "series": {name: [...]}} is drawn; anything else is written out.
function Figure({ figure }) {
  const { title = "", x, series } = figure ?? {};
  if (Array.isArray(x) && x.every(Number.isFinite) && series && typeof series === "object") {
    const order = x.map((_, at) => at).sort((left, right) => x[left] - x[right]);
    const drawn = Object.entries(series).filter(([, values]) => Array.isArray(values)).map(([label, values]) => ({
      label, points: order.filter((at) => Number.isFinite(values[at])).map((at) => [x[at], values[at]]),
    }));
    return html`<${Chart} title=${String(title)} series=${drawn} format=${short} formatX=${short} dots=${x.length < 30} />`;
  }
  return html`<p class="note">${plain(figure) ? String(figure) : JSON.stringify(figure)}</p>`;
}
