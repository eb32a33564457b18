// The ways by which tokens contribute to one: each layer a column, each line as wide as what passes along it.

import { html, useMemo } from "../../vendor/htm-preact.js";
import { weightAt } from "./packed.js";
import { layersOf, shownToken } from "./state.js";
import { short } from "./drawing.js";

const FAINTEST = 0.01; // of what makes up the token: less is not drawn
const [STEP, ROW, LEFT, TOP, GAP] = [74, 22, 104, 26, 24];

export function Graph({ tables, seen, at }) {
  const { edges, nodes, width, height, columns, second } = useMemo(() => laidOut(tables, seen, at), [tables, seen, at]);
  return html`<div class="scroll graph" tabindex="0" role="region" aria-label="Ways through the layers">
    <svg viewBox=${`0 0 ${width} ${height}`} style=${{ minWidth: `${Math.min(width, 560)}px`, maxWidth: `${1.2 * width}px` }} role="img"
      aria-label=${`The ways by which tokens contribute to “${shownToken(seen.produced[at])}”, layer by layer; the list says how much each does`}>
      ${columns.map(({ x, title }) => html`<text key=${title} class="layer-title" x=${x} y="12" text-anchor="middle">${title}</text>`)}
      ${edges.map(({ name, from, to, flow, side }) => html`<path key=${name} class=${side} data-edge=${name} data-flow=${flow.toFixed(4)} stroke-width=${(0.6 + 9 * flow).toFixed(2)}
        d=${`M${from.x},${from.y}C${(from.x + to.x) / 2},${from.y} ${(from.x + to.x) / 2},${to.y} ${to.x},${to.y}`} />`)}
      ${nodes.map(({ name, x, y, flow, side }) => html`<circle key=${name} class=${side} cx=${x} cy=${y} r=${(1.5 + 5 * Math.sqrt(flow)).toFixed(2)} />`)}
      ${seen.source.map((token, row) => html`<text key=${`s${row}`} x=${LEFT - 12} y=${TOP + (row + 0.5) * ROW + 4} text-anchor="end">${short(shownToken(token), 13)}</text>`)}
      ${seen.fed.slice(0, at + 1).map((token, row) => html`<text key=${`t${row}`} x=${second.x - 12} y=${second.y + (row + 0.5) * ROW + 4} text-anchor="end">…${short(shownToken(token), 13)}</text>`)}
      <text class="end" x=${width - 78} y=${second.y + (at + 0.5) * ROW + 4}>${short(shownToken(seen.produced[at]), 10)}</text>
    </svg>
  </div>`;
}

// From the token back to what it came from: what a node passes on is split as the sub-layer's contributions say.
function laidOut(tables, seen, at) {
  const [encoders, decoders] = [layersOf(seen, "encoder"), layersOf(seen, "decoder")];
  const sources = seen.source.length;
  const second = { x: LEFT + STEP * encoders, y: TOP + ROW * sources + GAP };
  const source = (layer, row) => ({ x: LEFT + STEP * layer, y: TOP + (row + 0.5) * ROW });
  const said = (layer, row) => ({ x: second.x + STEP * layer, y: second.y + (row + 0.5) * ROW });
  const edges = [];
  const nodes = [];
  const edge = (side, name, from, to, flow) => flow >= FAINTEST && edges.push({ side, name, from, to, flow });
  const mark = (side, place, layer, flows) => flows.forEach((flow, row) => flow >= FAINTEST && nodes.push({ side, name: `${side}${layer}.${row}`, ...place(layer, row), flow }));
  let own = new Array(at + 1).fill(0);
  own[at] = 1;
  let read = new Array(sources).fill(0);
  for (let layer = decoders; layer > 0; layer -= 1) {
    mark("said", said, layer, own);
    const [before, [inner, cross]] = [new Array(at + 1).fill(0), [tables[`decoder.${layer - 1}`], tables[`cross.${layer - 1}`]]];
    own.forEach((flow, row) => {
      if (!flow) return;
      for (let from = 0; from < sources; from += 1) {
        const part = flow * weightAt(cross, row, from);
        read[from] += part;
        edge("source", `c${layer}.${row}.${from}`, source(encoders, from), said(layer, row), part);
      }
      const kept = flow * weightAt(cross, row, sources);
      for (let from = 0; from <= row; from += 1) {
        const part = kept * weightAt(inner, row, from);
        before[from] += part;
        edge("said", `d${layer}.${row}.${from}`, said(layer - 1, from), said(layer, row), part);
      }
    });
    own = before;
  }
  mark("said", said, 0, own);
  for (let layer = encoders; layer > 0; layer -= 1) {
    mark("source", source, layer, read);
    const before = new Array(sources).fill(0);
    read.forEach((flow, row) => {
      if (!flow) return;
      for (let from = 0; from < sources; from += 1) {
        const part = flow * weightAt(tables[`encoder.${layer - 1}`], row, from);
        before[from] += part;
        edge("source", `e${layer}.${row}.${from}`, source(layer - 1, from), source(layer, row), part);
      }
    });
    read = before;
  }
  mark("source", source, 0, read);
  const columns = [
    ...Array.from({ length: encoders + 1 }, (_, layer) => ({ x: source(layer, 0).x, title: layer ? `encoder ${layer - 1}` : "source" })),
    ...Array.from({ length: decoders }, (_, layer) => ({ x: said(layer + 1, 0).x, title: `decoder ${layer}` })),
  ];
  return { edges, nodes, columns, second, width: second.x + STEP * decoders + 90, height: second.y + ROW * (at + 1) + 8 };
}
