// Inside: what the model does with one sentence. Its heads, what each layer would have said, what a token came from, and
// why it is this one; and what becomes of the translation without a head.

import { html, useCallback, useEffect, useLayoutEffect, useState } from "../vendor/htm-preact.js";
import { replaceAddress } from "../router.js";
import { exampleOf } from "./examples.js";
import { Failure } from "./failure.js";
import { Contrast } from "./inside/contrast.js";
import { Contributions } from "./inside/contributions.js";
import { live } from "./inside/data.js";
import { changedBy, Heads } from "./inside/heads.js";
import { Lens } from "./inside/lens.js";
import { useLooking } from "./inside/looking.js";
import { Said } from "./inside/said.js";
import { Sentence } from "./inside/sentence.js";
import { columnsOf, layersOf, readState, rowsOf, VIEWS, writeState } from "./inside/state.js";
import { needsModel } from "./needs-model.js";
import { chooseLanguages } from "./translate/languages.js";

export const InsideView = needsModel(({ about, values }) => html`<${Inside} about=${about} data=${live} values=${values} />`);

// `about` is what the service says of itself; a saved file has none.
export function Inside({ about, data, values }) {
  const [state, setState] = useState(() => withLanguages(readState(values), about));
  const [above, setAbove] = useState(0);
  const change = useCallback((changes) => setState((before) => ({ ...before, ...changes })), []);
  const address = new URLSearchParams(values).toString();
  useLayoutEffect(() => { // the address was changed by hand, or by the browser's way back
    const wanted = withLanguages(readState(values), about);
    setState((now) => (JSON.stringify(now) === JSON.stringify(wanted) ? now : wanted));
  }, [address]);
  useLayoutEffect(() => replaceAddress("inside", writeState(state)), [state]);

  const looking = useLooking(data, state);
  const { seen, attention, effects, progress, problem, working, measureAll, retry } = looking;
  const outcome = looking.outcome?.changes.join() === state.changes.join() ? looking.outcome : null; // not of the changes before
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

  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const view = Object.keys(VIEWS)[Number(event.key) - 1];
    const changes = data.saved || state.view !== "heads" ? null : changedBy(event.key, state);
    if (!view && !changes) return;
    event.preventDefault();
    change(view ? { view } : { changes });
  };
  const shared = { data, state, seen, change };
  return html`<div class="inside" style=${{ "--above": `${above}px` }}>
    <h1 class="unseen">Inside</h1>
    <${Sentence} about=${about} data=${data} state=${state} seen=${seen} working=${working} change=${change} />
    ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
    ${seen && html`<${Said} ...${{ seen, outcome, problem }} changes=${state.changes} onHeight=${setAbove} />
      <div onKeyDown=${onKey}>
        <${Views} chosen=${state.view} onChoose=${(view) => change({ view })} saved=${data.saved} />
        ${state.view === "heads" && html`<${Heads} ...${{ ...shared, looking, outcome }} />`}
        ${state.view === "lens" && html`<${Lens} ...${shared} />`}
        ${state.view === "contributions" && html`<${Contributions} ...${shared} />`}
        ${state.view === "contrast" && html`<${Contrast} ...${shared} />`}
      </div>`}
  </div>`;
}

function Views({ chosen, onChoose, saved }) {
  return html`<div class="views"><div role="group" aria-label="What is shown">
    ${Object.entries(VIEWS).map(([view, title], at) => html`<button type="button" class="act" key=${view} aria-pressed=${view === chosen} aria-keyshortcuts=${at + 1}
      onClick=${() => onChoose(view)}>${title}</button>`)}</div>
    <p class="note shortcuts">Keys: <kbd>1</kbd> to <kbd>4</kbd> what is shown${chosen === "heads" && !saved && html`, <kbd>o</kbd> the head off, <kbd>p</kbd> pinned
      to the chosen column, <kbd>u</kbd> undo all`}</p>
  </div>`;
}

function withLanguages(state, about) {
  if (!about) return state;
  const { source, target } = chooseLanguages(about, state.from === "auto" ? "" : state.from, state.to);
  return { ...state, from: source, to: target, text: state.text || exampleOf(source) };
}
