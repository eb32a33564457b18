// The tree as a drawing: a bracket above the middle of its first and its last child, walked with the arrow keys. Below
// it, in sight however deep the tree is, its words: those that the shown bracket looked at are lit, with their weights.

import { html, useEffect, useMemo, useRef } from "../../vendor/htm-preact.js";
import { two } from "../numbers.js";
import { columnsOf } from "./state.js";

const ROW = 46;
const MARGIN = 16;
const GAP = 14;
const PLATE = 28; // the height of a label's ground
const WORDS = 78; // the height of the words with their weights
const FONT = "15px ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
const canvas = document.createElement("canvas").getContext("2d");

function widthOf(text) {
  canvas.font = `600 ${FONT}`;
  return Math.ceil(canvas.measureText(text).width);
}

// All nodes, in the order in which they are opened, each with the numbers of its parent and children.
export function flatten(tree) {
  const nodes = [];
  const visit = (node, parent, depth) => {
    const own = nodes.push({ ...node, parent, depth, children: [] }) - 1;
    nodes[own].children = node.children.map((child) => visit(child, own, depth + 1));
    return own;
  };
  visit(tree, null, 0);
  return nodes;
}

const isTag = (node) => node.children.length === 0;

// Where everything stands: the middles of columns and nodes, the rows of nodes.
function place(nodes, columns) {
  const widths = columns.map((word) => Math.max(widthOf(word), widthOf("0.00")));
  for (const node of nodes) if (node.first === node.last) widths[node.first] = Math.max(widths[node.first], widthOf(node.label) + 8);
  let edge = MARGIN;
  const middles = widths.map((width) => {
    const middle = edge + width / 2;
    edge += width + GAP;
    return middle;
  });
  const deepest = Math.max(...nodes.filter((node) => !isTag(node)).map(({ depth }) => depth)) + 1;
  const rows = nodes.map((node) => (isTag(node) ? deepest : node.depth));
  const places = nodes.map(() => 0);
  for (let at = nodes.length - 1; at >= 0; at -= 1) { // children are after their parent
    const { children, first } = nodes[at];
    places[at] = isTag(nodes[at]) ? middles[first] : (places[children[0]] + places[children.at(-1)]) / 2;
  }
  return { widths, middles, rows, places, width: edge - GAP + MARGIN, height: heightOf(deepest) + PLATE / 2 };
}

const heightOf = (row) => MARGIN + PLATE / 2 + row * ROW;

export function TreeDrawing({ answer, nodes, at, chosen, weights, onChoose, onPoint }) {
  const area = useRef(null);
  const columns = columnsOf(answer);
  const placed = useMemo(() => place(nodes, columns), [nodes]);
  useEffect(() => reveal(area.current, placed.places[chosen], heightOf(placed.rows[chosen])), [placed, chosen]);
  const move = (event) => {
    const to = neighbour(event.key, chosen, nodes, placed);
    if (event.key === "Enter" || event.key === " ") onChoose(chosen);
    else if (to === undefined) return;
    else if (to !== chosen) {
      onChoose(to);
      area.current.querySelector(`[data-node="${to}"]`).focus();
    }
    event.preventDefault();
  };
  return html`<div class="tree-frame" ref=${area}>
    <svg width=${placed.width} height=${placed.height} viewBox=${`0 0 ${placed.width} ${placed.height}`} role="tree" aria-label="Tree of the sentence" onKeyDown=${move}>
      <g class="edges" aria-hidden="true">${nodes.map((node, one) => node.parent !== null && html`<path key=${one} class=${one === at || node.parent === at ? "near" : ""} d=${edgeTo(one, nodes, placed)} />`)}</g>
      ${nodes.map((node, one) => {
        const width = Math.max(36, widthOf(node.label) + 16);
        const siblings = node.parent === null ? [one] : nodes[node.parent].children;
        const classes = ["node", isTag(node) ? "tag" : "", node.opened === null ? "root" : "", one === at ? "shown" : ""];
        return html`<g key=${one} data-node=${one} class=${classes.filter(Boolean).join(" ")} role="treeitem" tabindex=${one === chosen ? 0 : -1}
          aria-label=${`${node.label}: ${columns.slice(node.first, node.last + 1).join(" ")}`} aria-selected=${one === chosen ? "true" : "false"}
          aria-level=${node.depth + 1} aria-setsize=${siblings.length} aria-posinset=${siblings.indexOf(one) + 1}
          onMouseEnter=${() => onPoint(one)} onMouseLeave=${() => onPoint(null)} onMouseDown=${(event) => event.preventDefault()} onFocus=${() => { onPoint(null); if (one !== chosen) onChoose(one); }}
          onClick=${(event) => { onPoint(null); onChoose(one); event.currentTarget.focus(); }}>
          <rect x=${placed.places[one] - width / 2} y=${heightOf(placed.rows[one]) - PLATE / 2} width=${width} height=${PLATE} rx="6" />
          <text x=${placed.places[one]} y=${heightOf(placed.rows[one])}>${node.label}</text>
        </g>`;
      })}
    </svg>
    <${Words} columns=${columns} placed=${placed} weights=${weights} span=${nodes[at]} />
  </div>`;
}

// Scrolls to what was chosen, if it is out of sight.
function reveal(frame, x, y) {
  const within = (at, from, size, margin) => at > from + margin && at < from + size - margin;
  if (!within(x, frame.scrollLeft, frame.clientWidth, 30)) frame.scrollLeft = x - frame.clientWidth / 2;
  if (!within(y, frame.scrollTop, frame.clientHeight - WORDS, 20)) frame.scrollTop = y - frame.clientHeight / 2;
}

// The words, lit by weight, the numbers, and a line below those that the shown bracket is over.
function Words({ columns, placed, weights, span }) {
  const { middles, widths, width } = placed;
  const largest = weights ? Math.max(...weights) : 1;
  const y = 10 + PLATE / 2;
  const left = (at) => middles[at] - widths[at] / 2 - 4;
  const right = (at) => middles[at] + widths[at] / 2 + 4;
  return html`<svg class="words" aria-hidden="true" width=${width} height=${WORDS} viewBox=${`0 0 ${width} ${WORDS}`}>
    ${columns.map((word, at) => html`<g key=${at} class=${at === columns.length - 1 ? "end" : ""} data-word=${at} data-weight=${weights?.[at].toFixed(4)}>
      ${weights && html`<rect x=${left(at)} y=${y - PLATE / 2} width=${right(at) - left(at)} height=${PLATE} rx="6" fill-opacity=${(weights[at] / largest).toFixed(3)} />`}
      <text x=${middles[at]} y=${y}>${word}</text>
      ${weights && html`<text class="weight" x=${middles[at]} y=${y + 34}>${two(weights[at])}</text>`}
    </g>`)}
    <path class="span" d=${`M${left(span.first)} ${y + 20} H${right(span.last)}`} />
  </svg>`;
}

function edgeTo(one, nodes, { places, rows }) {
  const above = nodes[one].parent;
  // Aslant to the next row, then straight down: so no edge crosses what hangs beside it.
  return `M${places[above]} ${heightOf(rows[above]) + PLATE / 2} L${places[one]} ${heightOf(rows[above] + 1) - PLATE / 2} V${heightOf(rows[one]) - PLATE / 2}`;
}

// Up to the parent, down to the first child, left and right within the row as it is drawn.
function neighbour(key, at, nodes, { rows, places }) {
  const row = nodes.map((_, one) => one).filter((one) => rows[one] === rows[at]).sort((one, other) => places[one] - places[other]);
  const beside = (step) => row[row.indexOf(at) + step] ?? at;
  switch (key) {
    case "ArrowUp": return nodes[at].parent ?? at;
    case "ArrowDown": return nodes[at].children[0] ?? at;
    case "ArrowLeft": return beside(-1);
    case "ArrowRight": return beside(1);
    case "Home": return 0;
    case "End": return nodes.length - 1;
    default: return undefined;
  }
}
