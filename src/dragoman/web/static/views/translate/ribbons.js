// Ribbons from the word that is pointed at to the words of the other side that it is aligned with: as thick as the
// alignment is strong.

import { html, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";

const LEAST = 0.03; // weaker ones are not drawn
const WIDEST = 12; // pixels
const DEPTH = 13; // into the space between two lines

export function Ribbons({ panes, segments, pointed }) {
  const box = useRef(null);
  const [drawn, setDrawn] = useState([]);
  useLayoutEffect(() => setDrawn(pointed ? ribbonsOf(panes.current, segments[pointed.segment]?.explanation, pointed) : []), [segments, pointed]);
  return html`<svg class="ribbons" ref=${box} aria-hidden="true">
    ${drawn.map(({ key, path, weight, width }) => html`<path key=${key} d=${path} data-weight=${weight.toFixed(4)} stroke-width=${width.toFixed(2)}
      style=${{ opacity: 0.25 + 0.5 * weight }} />`)}
  </svg>`;
}

function ribbonsOf(panes, explanation, { side, segment, word }) {
  if (!panes || !explanation || word < 0) return [];
  const frame = panes.getBoundingClientRect();
  const elementOf = (of, index) => panes.querySelector(`${of === "source" ? ".behind" : ".reading"} [data-segment="${segment}"][data-word="${index}"]`);
  const others = side === "target" ? explanation.alignment[word].map((weight, at) => ({ at, weight })) : explanation.alignment.map((row, at) => ({ at, weight: row[word] }));
  const below = ({ left, right, bottom }) => [(left + right) / 2 - frame.left, bottom - frame.top - 1];
  const own = elementOf(side, word)?.getClientRects()[0];
  return others.filter(({ weight }) => weight >= LEAST).flatMap(({ at, weight }) => {
    const other = elementOf(side === "target" ? "source" : "target", at)?.getClientRects()[0];
    if (!own || !other) return [];
    const [[x0, y0], [x1, y1]] = side === "target" ? [below(other), below(own)] : [below(own), below(other)];
    const sag = Math.max(y0, y1) + DEPTH; // it hangs below both words, and not over what stands between them
    const path = `M${x0},${y0} C${x0},${sag} ${x1},${sag} ${x1},${y1}`;
    return [{ key: at, path, weight, width: WIDEST * weight }];
  });
}
