// The same head as lines between tokens: rows on the left, what they look at on the right.

import { html, useEffect, useMemo, useRef } from "../../vendor/htm-preact.js";
import { prepare, useWidth } from "./drawing.js";
import { weightAt } from "./packed.js";

const STEP = 26; // pixels a token
const FAINTEST = 0.02;

export function Lines({ head, rows, columns, row, column, onChoose, colours }) {
  const [frame, width] = useWidth();
  const canvas = useRef(null);
  const height = STEP * Math.max(rows.length, columns.length);
  const strong = useMemo(() => strongest(head), [head]);
  useEffect(() => {
    if (!width) return;
    const context = prepare(canvas.current, width, height);
    context.strokeStyle = colours.line;
    for (const [from, to, weight] of strong) {
      const chosen = from === row;
      context.globalAlpha = chosen ? 0.25 + 0.75 * weight : 0.16 * weight;
      context.lineWidth = chosen ? 1 + 3 * weight : 1.5;
      context.beginPath();
      context.moveTo(0, (from + 0.5) * STEP);
      context.bezierCurveTo(width / 2, (from + 0.5) * STEP, width / 2, (to + 0.5) * STEP, width, (to + 0.5) * STEP);
      context.stroke();
    }
    context.globalAlpha = 1;
  }, [strong, width, height, row, colours]);
  const linked = new Set(strong.filter(([from, , weight]) => from === row && weight >= 0.1).map(([, to]) => to));
  return html`<div class="lines" role="region" tabindex="0" aria-label="Lines between tokens">
    <ul aria-label="Rows">${rows.map((label, at) => html`<li key=${at}>
      <button type="button" tabindex="-1" class=${at === row ? "token own" : "token"} aria-pressed=${at === row}
        onClick=${() => onChoose(at, column)}>${label}</button></li>`)}</ul>
    <div ref=${frame} class="between"><canvas ref=${canvas} aria-hidden="true"></canvas></div>
    <ul aria-label="Columns">${columns.map((label, at) => html`<li key=${at}>
      <button type="button" tabindex="-1" class=${`token ${at === column ? "own" : ""} ${linked.has(at) ? "linked" : ""}`} aria-pressed=${at === column}
        onClick=${() => onChoose(row, at)}>${label}</button></li>`)}</ul>
  </div>`;
}

function strongest(head) {
  const found = [];
  for (let row = 0; row < head.rows; row += 1) {
    for (let column = 0; column < head.columns; column += 1) {
      const weight = weightAt(head, row, column);
      if (weight >= FAINTEST) found.push([row, column, weight]);
    }
  }
  return found;
}
