// All heads of the model: a picture of each, and one measured number below it. One is chosen; arrow keys go through them.

import { html, useEffect, useRef } from "../../vendor/htm-preact.js";
import { Diverging, DivergingScale } from "./diverging.js";
import { pixels, prepare } from "./drawing.js";
import { headOf } from "./packed.js";
import { headKey, isOff, KINDS, layersOf, minus, pinOf, signed, STATISTICS, statisticOf, TITLES } from "./state.js";

export function HeadMap({ seen, heads, attention, effects, largest: strongest, state, colours, onChoose, onStatistic }) {
  const [rail, group] = [useRef(null), useRef(null)];
  const { name, digits, about } = STATISTICS[state.statistic];
  const values = heads.map((head) => statisticOf(head, state.statistic, effects)).filter((value) => value != null);
  const ofEffect = state.statistic === "effect";
  const largest = ofEffect ? strongest : Math.max(1e-9, ...values.map(Math.abs));
  const chosen = headKey(state);

  useEffect(() => { // the rail scrolls by itself: the chosen head is in sight
    const [box, own] = [rail.current.getBoundingClientRect(), group.current.querySelector(`[data-head="${chosen}"]`)?.getBoundingClientRect()];
    if (own && (own.top < box.top || own.bottom > box.bottom)) rail.current.scrollTop += own.bottom - box.bottom + 12;
  }, [chosen, attention.size > 0]);

  const onKey = (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    const next = neighbour(seen, state, down, right);
    onChoose(next);
    group.current.querySelector(`[data-head="${headKey(next)}"]`).focus();
  };

  return html`<section ref=${rail} class="sheet head-map" aria-labelledby="map-title">
    <div class="sheet-head">
      <h2 id="map-title">All heads</h2>
      <label class="field">Number <select value=${state.statistic} onChange=${(event) => onStatistic(event.target.value)}>
        ${Object.entries(STATISTICS).map(([id, one]) => html`<option value=${id}>${one.name}</option>`)}</select></label>
      <span class="note">${about}</span>
    </div>
    ${ofEffect && values.length > 0 && html`<${DivergingScale} largest=${largest} />`}
    <div class="kinds" ref=${group} role="radiogroup" aria-label="Head to look at" onKeyDown=${onKey}>
      ${KINDS.map((kind) => html`<div class="kind" key=${kind}>
        <h3>${TITLES[kind]}</h3>
        ${Array.from({ length: layersOf(seen, kind) }, (_, layer) => html`<div class="layer" key=${layer}>
          <span class="layer-name" title=${`layer ${layer}`} aria-hidden="true">${layer}</span>
          <div class="heads" style=${{ gridTemplateColumns: `repeat(${seen.num_heads}, minmax(0, 1fr))` }}>
            ${heads.filter((head) => head.kind === kind && head.layer === layer).map((head) => {
              const value = statisticOf(head, state.statistic, effects);
              const shown = value == null ? "–" : ofEffect ? signed(value, digits) : minus(value, digits);
              const key = headKey(head);
              const changed = isOff(state.changes, head) ? "off" : pinOf(state.changes, head) ? "pinned" : "";
              return html`<button type="button" role="radio" key=${key} data-head=${key} class=${`head ${changed}`}
                aria-checked=${key === chosen} tabindex=${key === chosen ? 0 : -1} onClick=${() => onChoose(head)}
                aria-label=${`${kind} layer ${layer} head ${head.head}${changed ? `, ${changed}` : ""}, ${name} ${shown}`}>
                <${Thumbnail} packed=${attention.get(`${kind}.${layer}`)} head=${head.head} colours=${colours} />
                <span class="value">${shown}</span>
                ${ofEffect ? html`<${Diverging} value=${value ?? 0} largest=${largest} />` : html`<span class="gauge"><span style=${{ width: `${(100 * Math.abs(value ?? 0)) / largest}%` }}></span></span>`}
              </button>`;
            })}
          </div>
        </div>`)}
      </div>`)}
    </div>
  </section>`;
}

const SIDE = 44;

function Thumbnail({ packed, head, colours }) {
  const canvas = useRef(null);
  useEffect(() => {
    if (!packed) return;
    const context = prepare(canvas.current, SIDE, SIDE);
    canvas.current.style.width = ""; // as wide as its place
    canvas.current.style.height = "";
    const one = headOf(packed, head);
    context.imageSmoothingEnabled = Math.max(one.rows, one.columns) > SIDE;
    context.drawImage(pixels(one, colours), 0, 0, SIDE, SIDE);
    canvas.current.dataset.drawn = "yes";
  }, [packed, head, colours]);
  return html`<canvas ref=${canvas} width="44" height="44" aria-hidden="true"></canvas>`;
}

// One step further; over the edge of a kind into the next one.
function neighbour(seen, { kind, layer, head }, down, right) {
  const column = Math.min(seen.num_heads - 1, Math.max(0, head + right));
  let [at, row] = [KINDS.indexOf(kind), layer + down];
  if (row < 0) {
    if (at === 0) return { kind, layer, head };
    at -= 1;
    row = layersOf(seen, KINDS[at]) - 1;
  } else if (row >= layersOf(seen, kind)) {
    if (at === KINDS.length - 1) return { kind, layer, head };
    at += 1;
    row = 0;
  }
  return { kind: KINDS[at], layer: row, head: column };
}
