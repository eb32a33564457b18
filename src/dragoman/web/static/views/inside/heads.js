// The heads: all of them in a rail that stays, the chosen one's map beside it, what it changes and what all change below.

import { html, useMemo } from "../../vendor/htm-preact.js";
import { Changes } from "./changes.js";
import { isRooted, useColours } from "./drawing.js";
import { HeatMap, RowDetail } from "./heat.js";
import { Lines } from "./lines.js";
import { HeadMap } from "./map.js";
import { headOf, weightAt } from "./packed.js";
import { Ranking } from "./ranking.js";
import { columnsOf, headKey, rowsOf, shownToken, TITLES } from "./state.js";

export function Heads({ data, state, seen, looking, outcome, change }) {
  const { attention, effects, progress, problem, measureAll } = looking;
  const colours = useColours();
  const rows = useMemo(() => rowsOf(seen, state.kind), [seen, state.kind]);
  const columns = useMemo(() => columnsOf(seen, state.kind).map(shownToken), [seen, state.kind]);
  const packed = attention.get(`${state.kind}.${state.layer}`);
  const head = useMemo(() => (packed && state.head < packed.heads ? headOf(packed, state.head) : null), [packed, state.head]);
  const heads = outcome?.heads ?? seen.heads;
  const row = Math.min(state.row, rows.length - 1);
  const choose = (at, column) => change({ row: at, column });
  const chooseHead = ({ kind, layer, head: number }) =>
    change({ kind, layer, head: number, ...(kind === state.kind ? {} : { row: 0, column: -1 }) });
  const name = `${TITLES[state.kind]}, layer ${state.layer}, head ${state.head}`;
  const fits = head && head.rows === rows.length && head.columns === columns.length;
  const shared = { head, rows, columns, row, column: state.column, colours };
  const largest = Math.max(1e-9, ...[...effects.values()].map(Math.abs));

  return html`<div class="workbench">
    <${HeadMap} ...${{ seen, heads, attention, effects, largest, state, colours }} onChoose=${chooseHead} onStatistic=${(statistic) => change({ statistic })} />
    <div class="middle">
      <section class="sheet chosen" aria-labelledby="chosen-title">
        <div class="sheet-head"><h2 id="chosen-title">${name}</h2>
          <span class="note">${state.kind === "encoder" ? "Each row is a token; its weights sum to 1." : "Each row: the token fed → the token produced there. Weights sum to 1."}
            ${state.changes.length ? " With the changes below." : ""}</span></div>
        <div class="large">
          <${HeatMap} ...${{ ...shared, head: fits ? head : null, name }} onChoose=${choose} />
          <div class="beside-heat">
            <${Scale} rooted=${isRooted(columns.length)} />
            ${fits && html`<${RowDetail} ...${shared} masked=${state.kind === "decoder" && !state.changes.some((one) => one.endsWith(":unmask"))} onChoose=${choose} onRow=${(at) => change({ row: at })} />`}
          </div>
        </div>
      </section>
      <${Changes} ...${{ seen, outcome, state, problem }} saved=${data.saved} onChanges=${(changes) => change({ changes })} />
      ${fits && html`<section class="sheet chosen"><h3>Lines between tokens</h3><p class="note">The chosen row stands out; weights under 0.02 are not drawn.</p><${Lines} ...${shared} onChoose=${choose} /></section>`}
      <${Ranking} ...${{ heads: seen.heads, effects, largest, state, progress }} saved=${data.saved} sharpest=${fits && sharpestOf(head, rows, columns)}
        onMeasure=${() => { change({ ranked: true, statistic: "effect" }); if (state.ranked) measureAll(); }} onChoose=${chooseHead} />
    </div>
  </div>`;
}

function Scale({ rooted }) {
  return html`<p class="heat-scale"><span>0</span><span class="ramp" aria-hidden="true"></span>
    ${rooted && html`<span title="In a long sentence the colour grows with the root of the weight">0.25</span><span class="ramp upper" aria-hidden="true"></span>`}
    <span>1</span><span class="unseen"> is the scale of weights</span></p>`;
}

function sharpestOf(head, rows, columns) {
  let best = 0;
  for (let at = 1; at < head.steps.length; at += 1) if (head.steps[at] > head.steps[best]) best = at;
  const [row, column] = [Math.floor(best / head.columns), best % head.columns];
  return { row: rows[row], column: columns[column], weight: weightAt(head, row, column) };
}

// The change that a key makes to the changes, for the chosen head; null: it is not such a key.
export function changedBy(key, state) {
  const own = headKey(state);
  const without = state.changes.filter((one) => one !== `${own}:off` && !one.startsWith(`${own}:pin@`));
  if (key === "o") return state.changes.includes(`${own}:off`) ? without : [...without, `${own}:off`];
  if (key === "p") return state.changes.some((one) => one.startsWith(`${own}:pin@`)) || state.column < 0 ? without : [...without, `${own}:pin@${state.column}`];
  return key === "u" ? [] : null;
}
