// The beam search as a tree: a column for each step, a branch for each continuation that was considered, as wide as it is
// probable after what it continues. What was pruned fades; the way to the winner stands out.

import { html, useMemo } from "../../vendor/htm-preact.js";
import { percent, shownPiece } from "./words.js";

const ROW = 25;
const LEFT = 14;
const WIDEST = 15; // of a branch of probability 1
const THINNEST = 0.8;
const LONGEST_LABEL = 14; // characters

export function BeamTree({ record, winner, alpha, step, onStep }) {
  const drawn = useMemo(() => layoutOf(record), [record]);
  const won = useMemo(() => wayTo(record, winner), [record, winner]);
  const { width, height, nodes, columns } = drawn;
  const said = `The search as a tree of ${record.steps.length} steps; with α = ${alpha.toFixed(1)} the winner is “${winner?.text ?? ""}”`;
  return html`<div class="scroll beam-tree" tabindex="0" role="region" aria-label="The search as a tree">
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${said}>
      <rect class="step-band" x=${columns[Math.min(step, columns.length - 1)].x - 5} y="0" width=${columns[Math.min(step, columns.length - 1)].width + 10} height=${height} rx="6" />
      <circle cx=${LEFT - 6} cy=${height / 2} r="3.5" class="root" />
      ${nodes.map((node) => html`<path key=${`e${node.key}`} class=${classOf(node, won)} d=${branch(node, height)} stroke-width=${node.thickness.toFixed(2)}
        data-step=${node.step} data-probability=${node.one.token_probability.toFixed(4)} />`)}
      ${nodes.map((node) => html`<g key=${node.key} class=${classOf(node, won)} data-node=${node.key} data-token=${node.one.token} data-fate=${node.one.fate} onClick=${() => onStep(node.step)}>
        <title>${`${node.one.text || shownPiece(node.one.token)}\n${percent(node.one.token_probability)} after what it continues; log P ${node.one.log_probability.toFixed(2)}; ${node.one.fate}`}</title>
        <rect x=${node.x - 3} y=${node.y - 10} width=${node.label.width + 8} height="20" rx="5" />
        <text x=${node.x + 1} y=${node.y + 5}>${node.label.text}</text>
      </g>`)}
    </svg>
  </div>`;
}

const classOf = ({ key, one }, won) => `${one.fate}${won.has(key) ? " won" : ""}`;

let pen = null;
function label(piece) {
  const whole = shownPiece(piece);
  const text = whole.length > LONGEST_LABEL ? `${whole.slice(0, LONGEST_LABEL - 1)}…` : whole;
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `650 14px ${getComputedStyle(document.body).fontFamily}`;
  return { text, width: Math.ceil(pen.measureText(text).width) };
}

function layoutOf({ steps }) {
  const most = Math.max(...steps.map((level) => level.length));
  const height = most * ROW + 12;
  const nodes = [];
  const columns = [];
  let x = LEFT + 34;
  let rows = new Map(); // row of the beam: its node
  steps.forEach((level, step) => {
    const ordered = level.map((one, at) => ({ one, at, parent: rows.get(one.parent) ?? null }))
      .sort((a, b) => (a.parent?.y ?? 0) - (b.parent?.y ?? 0) || b.one.log_probability - a.one.log_probability);
    const top = (height - ordered.length * ROW) / 2;
    const labelled = ordered.map((entry) => ({ ...entry, label: label(entry.one.token) }));
    const widest = Math.max(...labelled.map((entry) => entry.label.width));
    rows = new Map();
    labelled.forEach(({ one, at, parent, label: shown }, place) => {
      const node = { key: `${step}.${at}`, step, one, parent, label: shown, x, y: top + place * ROW + ROW / 2, thickness: Math.max(THINNEST, WIDEST * one.token_probability) };
      nodes.push(node);
      if (one.row !== null) rows.set(one.row, node);
    });
    columns.push({ x, width: widest + 6 });
    x += widest + 54;
  });
  return { nodes, columns, height, width: x };
}

function branch({ parent, x, y }, height) {
  const [x0, y0] = parent ? [parent.x + parent.label.width + 6, parent.y] : [LEFT - 6, height / 2];
  const middle = (x0 + x - 4) / 2;
  return `M${x0},${y0} C${middle},${y0} ${middle},${y} ${x - 4},${y}`;
}

// The keys of the nodes that lead to a hypothesis which ended.
function wayTo({ steps }, winner) {
  const keys = new Set();
  if (!winner) return keys;
  let step = winner.length - 1;
  let at = steps[step]?.findIndex((one) => one.fate === "finished" && one.text === winner.text && one.log_probability === winner.log_probability) ?? -1;
  while (step >= 0 && at >= 0) {
    keys.add(`${step}.${at}`);
    const { parent } = steps[step][at];
    step -= 1;
    at = step >= 0 ? steps[step].findIndex((one) => one.row === parent) : -1;
  }
  return keys;
}
