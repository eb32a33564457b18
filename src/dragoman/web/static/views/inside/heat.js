// The chosen head, large: rows look at columns. A canvas; its values are read out below it, and listed for the row.

import { html, useLayoutEffect, useMemo, useRef, useState } from "../../vendor/htm-preact.js";
import { FONT, pixels, prepare, short, useWidth } from "./drawing.js";
import { weightAt } from "./packed.js";

const HIGHEST = 44;
const LABELLED = 11; // pixels a cell needs for its own label

export function HeatMap({ head, rows, columns, row, column, onChoose, colours, name, verb = "looks at" }) {
  const [frame, width] = useWidth();
  const canvas = useRef(null);
  const [hover, setHover] = useState(null);
  const at = hover ?? { row, column };
  const layout = useMemo(() => layoutOf(width, rows, columns), [width, rows, columns]);
  const picture = useMemo(() => head && pixels(head, colours), [head, colours]);

  // Before the browser paints: an effect would come a frame later, and frames are slow where canvases are many.
  useLayoutEffect(() => {
    if (!picture || !layout) return;
    draw(canvas.current, layout, picture, rows, columns, at, colours);
    canvas.current.dataset.drawn = name; // for whoever waits for the picture
  }, [picture, layout, rows, columns, at.row, at.column, colours, name]);

  const cellUnder = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const found = {
      row: Math.floor((event.clientY - box.top - layout.top) / layout.high),
      column: Math.floor((event.clientX - box.left - layout.left) / layout.cell),
    };
    if (found.row < 0 || found.row >= rows.length || found.column >= columns.length) return null;
    return { row: found.row, column: Math.max(-1, found.column) };
  };
  const onKey = (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!steps) return;
    event.preventDefault();
    const inside = (value, most) => Math.min(most - 1, Math.max(0, value));
    onChoose(inside(row + steps[0], rows.length), inside(Math.max(0, column) + steps[1], columns.length));
  };
  const choose = (event) => {
    const found = cellUnder(event);
    if (found) onChoose(found.row, found.column);
  };

  return html`<div class="heat" ref=${frame}>
    <div class="heat-frame" tabindex="0" role="group" onKeyDown=${onKey} aria-describedby="heat-readout"
      aria-label=${`${name}: ${rows.length} rows by ${columns.length} columns; arrow keys move`}>
      <canvas ref=${canvas} aria-hidden="true" onMouseMove=${(event) => setHover(cellUnder(event))}
        onMouseLeave=${() => setHover(null)} onClick=${choose}></canvas>
    </div>
    <p id="heat-readout" class="readout" aria-live="polite">${head && readout(head, rows, columns, at, verb)}</p>
  </div>`;
}

function readout(head, rows, columns, { row, column }, verb) {
  if (row >= head.rows) return "";
  if (column < 0 || column >= head.columns) return html`<b>${rows[row]}</b>`;
  const weight = weightAt(head, row, column);
  return html`<b>${rows[row]}</b> ${verb} <b>${columns[column]}</b>: <span class="number">${weight.toFixed(4)}</span>`;
}

let ruler = null;
function textWidth(text) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = FONT;
  return ruler.measureText(text).width;
}

function layoutOf(width, rows, columns) {
  if (!width) return null;
  const widest = (labels, most) => Math.min(most, Math.max(...labels.map((label) => textWidth(short(label)))) + 10);
  const left = Math.ceil(widest(rows, Math.max(70, width * 0.36)));
  const top = Math.ceil(widest(columns, 120) * 0.87 + 10);
  const slant = Math.ceil(Math.min(60, widest(columns, 120) * 0.5));
  const cell = Math.max(1.5, (width - left - slant) / columns.length); // as wide as the column that it stands in
  const high = Math.min(HIGHEST, cell);
  return { left, top, cell, high, width: left + cell * columns.length + slant, height: top + high * rows.length + 2 };
}

function draw(canvas, { left, top, cell, high, width, height }, picture, rows, columns, at, colours) {
  const context = prepare(canvas, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, left, top, cell * columns.length, high * rows.length);
  context.strokeStyle = colours.edge;
  context.strokeRect(left - 0.5, top - 0.5, cell * columns.length + 1, high * rows.length + 1);
  context.textAlign = "right";
  rows.forEach((label, row) => {
    if (high < LABELLED && row !== at.row) return;
    context.fillStyle = row === at.row ? colours.mark : colours.ink;
    context.fillText(fitted(context, label, left - 8), left - 5, top + (row + 0.5) * high);
  });
  context.textAlign = "left";
  columns.forEach((label, column) => {
    if (cell < LABELLED && column !== at.column) return;
    context.save();
    context.translate(left + (column + 0.5) * cell, top - 5);
    context.rotate(-Math.PI / 3);
    context.fillStyle = column === at.column ? colours.mark : colours.ink;
    context.fillText(short(label), 0, 0);
    context.restore();
  });
  context.strokeStyle = colours.mark;
  context.lineWidth = 2;
  if (at.row < rows.length) context.strokeRect(left, top + at.row * high, cell * columns.length, high);
  if (at.column >= 0 && at.column < columns.length) context.strokeRect(left + at.column * cell, top + at.row * high, cell, high);
  context.lineWidth = 1;
}

function fitted(context, label, width) {
  if (context.measureText(label).width <= width) return label;
  let most = label.length;
  while (most > 3 && context.measureText(short(label, most)).width > width) most -= 1;
  return short(label, most);
}

const LISTED = 8;

// The chosen row in words and numbers: what a picture cannot be read out as.
export function RowDetail({ head, rows, columns, row, masked, onChoose, onRow }) {
  const weights = columns.map((_, column) => weightAt(head, row, column));
  const visible = masked ? row + 1 : columns.length;
  const order = Array.from({ length: visible }, (_, column) => column).sort((one, other) => weights[other] - weights[one]);
  const rest = order.slice(LISTED).reduce((sum, column) => sum + weights[column], 0);
  return html`<div class="row-detail">
    <label class="field">Row <select aria-label="Row" value=${row} onChange=${(event) => onRow(Number(event.target.value))}>
      ${rows.map((label, at) => html`<option value=${at}>${at}: ${label}</option>`)}</select></label>
    <p class="note">It looks at</p>
    <ol class="weights">${order.slice(0, LISTED).map((column) => html`<li key=${column} data-column=${column}>
      <button type="button" class="quiet" onClick=${() => onChoose(row, column)}>${columns[column]}</button>
      <meter class="chance" min="0" max="1" value=${weights[column]} aria-label=${`weight on ${columns[column]}`}></meter>
      <span class="share">${weights[column].toFixed(4)}</span></li>`)}</ol>
    ${order.length > LISTED && html`<p class="note">and at ${order.length - LISTED} more with ${rest.toFixed(4)} in all</p>`}
    ${visible < columns.length && html`<p class="note">The mask hides ${columns.length - visible} that come later.</p>`}
  </div>`;
}
