// Inside: every head of the model on one sentence, what it looks at, and what becomes of the translation without it.

import { html, useCallback, useEffect, useLayoutEffect, useMemo, useState } from "../vendor/htm-preact.js";
import { replaceAddress } from "../router.js";
import { exampleOf } from "./examples.js";
import { Failure } from "./failure.js";
import { Changes } from "./inside/changes.js";
import { live } from "./inside/data.js";
import { isRooted, useColours } from "./inside/drawing.js";
import { HeatMap, RowDetail } from "./inside/heat.js";
import { Lines } from "./inside/lines.js";
import { useLooking } from "./inside/looking.js";
import { HeadMap } from "./inside/map.js";
import { headOf, weightAt } from "./inside/packed.js";
import { Ranking } from "./inside/ranking.js";
import { columnsOf, layersOf, minus, readState, rowsOf, shownToken, TITLES, writeState } from "./inside/state.js";
import { needsModel } from "./needs-model.js";
import { chooseLanguages, Languages } from "./translate/languages.js";

export const InsideView = needsModel(({ about, values }) => html`<${Inside} about=${about} data=${live} values=${values} />`);

// `about` is what the service says of itself; a saved file has none.
export function Inside({ about, data, values }) {
  const [state, setState] = useState(() => withLanguages(readState(values), about));
  const change = useCallback((changes) => setState((before) => ({ ...before, ...changes })), []);
  const address = new URLSearchParams(values).toString();
  useLayoutEffect(() => { // the address was changed by hand, or by the browser's way back
    const wanted = withLanguages(readState(values), about);
    setState((now) => (JSON.stringify(now) === JSON.stringify(wanted) ? now : wanted));
  }, [address]);
  useLayoutEffect(() => replaceAddress("inside", writeState(state)), [state]);

  const { seen, outcome: found, attention, effects, progress, problem, working, measureAll, retry } = useLooking(data, state);
  const outcome = found?.changes.join() === state.changes.join() ? found : null; // not of the changes before
  useEffect(() => { // an address may ask for what this run does not have
    if (!seen) return;
    const limits = {
      layer: layersOf(seen, state.kind), head: seen.num_heads, row: rowsOf(seen, state.kind).length, column: columnsOf(seen, state.kind).length,
    };
    const wrong = Object.keys(limits).filter((name) => state[name] >= limits[name]);
    if (wrong.length) change(Object.fromEntries(wrong.map((name) => [name, name === "column" ? -1 : limits[name] - 1])));
  }, [seen, state.kind]);
  useEffect(() => {
    if (state.ranked && seen && !data.saved && progress === null && attention.size && effects.size < seen.heads.length) measureAll();
  }, [state.ranked, seen, attention.size > 0]);

  return html`<div class="inside">
    <h1 class="unseen">Inside</h1>
    <${Sentence} about=${about} data=${data} state=${state} seen=${seen} working=${working} change=${change} />
    ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
    ${seen && html`<${Pictures} ...${{ data, state, seen, outcome, attention, effects, progress, problem, measureAll, change }} />`}
  </div>`;
}

function withLanguages(state, about) {
  if (!about) return state;
  const { source, target } = chooseLanguages(about, state.from === "auto" ? "" : state.from, state.to);
  return { ...state, from: source, to: target, text: state.text || exampleOf(source) };
}

function Sentence({ about, data, state, seen, working, change }) {
  const another = (changes) => change({ ...changes, row: 0, column: -1, changes: [], ranked: false });
  if (data.saved) {
    return html`<section class="sheet sentence"><dl class="figures">
      <div><dt>Text</dt><dd>${seen?.text}</dd></div><div><dt>Translation</dt><dd>${seen?.translation}</dd></div>
      ${seen && html`<div><dt>log P</dt><dd class="number">${minus(seen.log_probability)}</dd></div>`}</dl></section>`;
  }
  return html`<section class="sheet sentence" aria-label="Sentence">
    <${Languages} about=${about} chosen=${{ source: state.from, target: state.to }} detected=${null}
      onChoose=${(from, to) => { const { source, target } = chooseLanguages(about, from, to); another({ from: source, to: target, sentence: 0, translation: "" }); }}
      onSwap=${() => another({ from: state.to, to: state.from, text: seen?.translation ?? state.text, sentence: 0, translation: "" })} />
    <div class="pair">
      <label class="field wide">Text
        <input type="text" value=${state.text} lang=${state.from} dir="auto" maxlength=${about.character_limit} placeholder="Type a sentence" autofocus
          onInput=${(event) => another({ text: event.target.value, sentence: 0, translation: "" })} /></label>
      <label class="field wide">Translation
        <input type="text" value=${state.translation || seen?.translation || ""} lang=${state.to} dir="auto" maxlength=${about.character_limit}
          disabled=${!seen} onChange=${(event) => another({ translation: event.target.value === seen?.translation ? "" : event.target.value.trim() })} /></label>
    </div>
    <div class="actions">
      ${seen && seen.sentences.length > 1 && html`<label class="field">Sentence <select value=${seen.sentence}
        onChange=${(event) => another({ sentence: Number(event.target.value), translation: "" })}>
        ${seen.sentences.map((one, at) => html`<option value=${at}>${at + 1}. ${one.slice(0, 40)}</option>`)}</select></label>`}
      ${seen && html`<span class="note log-probability">log P = ${minus(seen.log_probability)}</span>`}
      ${state.translation && html`<button type="button" class="quiet" onClick=${() => another({ translation: "" })}>The model’s own translation</button>`}
      <span class="note" aria-live="polite">${working ? "Looking …" : ""}</span>
      ${seen && html`<${SaveButton} data=${data} seen=${seen} state=${state} />`}
    </div>
    ${!state.text.trim() && html`<p class="note">Type a sentence: it is translated, and every head of the model is shown at work on it.</p>`}
  </section>`;
}

function SaveButton({ data, seen, state }) {
  const [said, setSaid] = useState("");
  const save = async () => {
    setSaid("Saving …");
    try {
      const address = URL.createObjectURL(await data.page({ ...seen.question, changes: state.changes }, writeState(state)));
      const link = document.createElement("a");
      link.href = address;
      link.download = "inside.html";
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      setSaid("Saved");
    } catch (error) {
      setSaid(error.message);
    }
    setTimeout(() => setSaid(""), 4000);
  };
  return html`<button type="button" class="quiet save" onClick=${save}><span aria-live="polite">${said || "Save as one HTML file"}</span></button>`;
}

function Pictures({ data, state, seen, outcome, attention, effects, progress, problem, measureAll, change }) {
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

  return html`
    <${HeadMap} ...${{ seen, heads, attention, effects, state, colours }} onChoose=${chooseHead} onStatistic=${(statistic) => change({ statistic })} />
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
      ${fits && html`<h3>Lines between tokens</h3><p class="note">The chosen row stands out; weights under 0.02 are not drawn.</p><${Lines} ...${shared} onChoose=${choose} />`}
    </section>
    <div class="twin">
      <${Changes} ...${{ seen, outcome, state, problem }} saved=${data.saved} onChanges=${(changes) => change({ changes })} />
      <${Ranking} ...${{ heads: seen.heads, effects, state, progress }} saved=${data.saved} sharpest=${fits && sharpestOf(head, rows, columns)}
        onMeasure=${() => { change({ ranked: true, statistic: "effect" }); if (state.ranked) measureAll(); }} onChoose=${chooseHead} />
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
