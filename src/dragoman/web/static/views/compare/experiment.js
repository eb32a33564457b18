// An experiment's result: what was claimed, by which rule it was judged, what was found, its arms and its figures.

import { html, useMemo } from "../../vendor/htm-preact.js";
import { Chart } from "../../chart.js";
import { short } from "../numbers.js";

const plain = (value) => value !== null && value !== undefined && typeof value !== "object";
const list = (value) => (Array.isArray(value) ? value : []);
const shown = (value) => (typeof value === "number" ? (Number.isInteger(value) ? value.toLocaleString("en") : short(value)) : String(value));
const FEW = 12; // more arms are shown when they are asked for: the figures say it shorter
const PARTS = [["claim", "Claim"], ["method", "Method"], ["rule", "Rule"], ["headline", "Found"]];

export function Experiment({ content }) {
  const { experiment, title, arms, figures } = content;
  return html`
    <section class="sheet study experiment" aria-label="Experiment">
      <header><h2>${plain(title) ? title : experiment}</h2></header>
      ${PARTS.filter(([name]) => plain(content[name])).map(([name, label]) => html`<p key=${name}><b>${label}:</b> ${content[name]}</p>`)}
      <${Rows} label="Findings" rows=${list(content.findings).filter((one) => one && typeof one === "object")} />
      ${list(content.notes).filter(plain).map((note) => html`<p class="note" key=${note}>${note}</p>`)}
    </section>
    ${figures.length > 0 && html`<section class="sheet study" aria-label="Figures">
      <header><h2>Figures</h2></header>
      <div class="charts">${figures.map((figure, at) => html`<${Figure} key=${at} figure=${figure} />`)}</div>
    </section>`}
    ${arms.length > 0 && html`<section class="sheet study" aria-label="Measurements">
      <details open=${arms.length <= FEW}><summary><h2>Measurements</h2> <span class="hint">${arms.length === 1 ? "one arm" : `${arms.length} arms`}</span></summary>
        <${Rows} label="Arms" rows=${arms} /></details>
    </section>`}`;
}

// A column for everything plain that any row has, in the order in which it first comes.
function Rows({ label, rows }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => plain(row[name]))))];
  if (!columns.length) return null;
  return html`<h3>${label}</h3><div class="scroll" role="region" tabindex="0" aria-label=${label}><table>
    <thead><tr>${columns.map((name) => html`<th scope="col" key=${name}>${name.replaceAll("_", " ")}</th>`)}</tr></thead>
    <tbody>${rows.map((row, at) => html`<tr key=${at}>${columns.map((name) => html`<td key=${name} class=${typeof row[name] === "number" ? "number" : ""}>
      ${plain(row[name]) ? shown(row[name]) : ""}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

// {"title", "x": [...], "series": {name: [...]}} is drawn, with names for the x where there are `labels`; anything else
// is written out.
function Figure({ figure }) {
  const drawn = useMemo(() => seriesOf(figure ?? {}), [figure]);
  const names = list(figure?.labels);
  const formatX = useMemo(
    () => (names.length ? (value) => names[figure.x.indexOf(value)] ?? "" : short), [figure],
  );
  if (!drawn) return html`<p class="note">${plain(figure) ? String(figure) : JSON.stringify(figure)}</p>`;
  const positive = drawn.every(({ points }) => points.every(([, y]) => y > 0));
  return html`<${Chart} title=${String(figure.title ?? "")} series=${drawn} format=${short} formatX=${formatX}
    logarithmic=${figure.log_y === true && positive} dots=${figure.x.length < 30} />`;
}

function seriesOf({ x, series }) {
  if (!Array.isArray(x) || !x.every(Number.isFinite) || !series || typeof series !== "object") return null;
  const order = x.map((_, at) => at).sort((left, right) => x[left] - x[right]);
  return Object.entries(series).filter(([, values]) => Array.isArray(values)).map(([label, values]) => ({
    label, points: order.filter((at) => Number.isFinite(values[at])).map((at) => [x[at], values[at]]),
  }));
}
