// Parse: a sentence, its tree, and which words each bracket looked at when it was written.

import { html, useCallback, useLayoutEffect, useMemo, useState } from "../vendor/htm-preact.js";
import { addressOf, replaceAddress } from "../router.js";
import { Failure } from "./failure.js";
import { needs } from "./needs-model.js";
import { two } from "./numbers.js";
import { Looked } from "./parse/looked.js";
import { useParse, weightsOf } from "./parse/parsing.js";
import { readState, writeState } from "./parse/state.js";
import { Symbols } from "./parse/symbols.js";
import { flatten, TreeDrawing } from "./parse/tree.js";
import { CopyButton } from "./translate/copying.js";

export const ParseView = needs("parser", Parser);

function Parser({ about, values }) {
  const [state, setState] = useState(() => readState(values));
  const change = useCallback((changes) => setState((before) => ({ ...before, ...changes })), []);
  const address = new URLSearchParams(values).toString();
  useLayoutEffect(() => { // the address was changed by hand, or by the browser's way back
    const wanted = readState(values);
    setState((now) => (JSON.stringify(now) === JSON.stringify(wanted) ? now : wanted));
  }, [address]);
  useLayoutEffect(() => replaceAddress("parse", writeState(state)), [state]);
  const parsing = useParse(about.character_limit, state);
  const { answer, problem, retry } = parsing;

  return html`<div class="parse">
    <h1 class="unseen">Parse</h1>
    <${Sentence} about=${about} state=${state} parsing=${parsing} change=${change} />
    ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
    ${answer && html`<${Parsed} answer=${answer} state=${state} parsing=${parsing} change=${change} />`}
  </div>`;
}

function Sentence({ about, state, parsing, change }) {
  const { text, constrained } = state;
  const { answer, working } = parsing;
  const over = text.length - about.character_limit;
  const link = () => location.origin + location.pathname + addressOf("parse", writeState(state));
  return html`<section class="sheet" aria-label="Sentence">
    <div class="writing"><div class="behind" aria-hidden="true">${text}${"\u200b"}</div>
    <textarea value=${text} dir="auto" spellcheck=${false} autofocus placeholder="Type a sentence" aria-label="Sentence to parse"
      aria-describedby="parse-note" aria-invalid=${over > 0 ? "true" : undefined}
      onInput=${(event) => change({ text: event.target.value, at: 1, closing: false })}></textarea></div>
    <div class="actions">
      <button type="button" class="quiet" onClick=${() => change({ text: "", at: 1 })} disabled=${!text}>Clear</button>
      <${CopyButton} what="Copy brackets" done="Copied" content=${() => answer.brackets} disabled=${!answer?.brackets} />
      <${CopyButton} what="Copy link" done="Link copied" content=${link} disabled=${!text} />
      <button type="button" class="quiet switch" role="switch" aria-checked=${constrained ? "true" : "false"}
        title="With it the search can only end in a tree over exactly these words" onClick=${() => change({ constrained: !constrained, at: 1 })}>Only trees</button>
      <span class="note" aria-live="polite">${working ? "Parsing …" : ""}</span>
      <span id="parse-note" class=${over > 0 ? "count problem" : "count"} aria-live=${over > 0 ? "polite" : "off"}>
        ${over > 0
          ? `${number(text.length)} characters; at most ${number(about.character_limit)} are parsed at once: leave out ${number(over)}`
          : `${number(text.length)} / ${number(about.character_limit)}`}
      </span>
    </div>
    ${!text.trim() && html`<p class="note">Its tree appears as you type. Point at a bracket: the words that it looked at when it was written light up.</p>`}
  </section>`;
}

const number = (value) => value.toLocaleString("en");

// What is shown follows the pointer while there is one on a bracket, and otherwise what was chosen.
function Parsed({ answer, state, parsing, change }) {
  const [pointed, setPointed] = useState(null);
  const nodes = useMemo(() => (answer.tree ? flatten(answer.tree) : null), [answer]);
  useLayoutEffect(() => setPointed(null), [answer]); // an effect could come after the pointer moved on and undo that
  const count = nodes ? nodes.length : answer.symbols.length;
  const at = Math.min(pointed ?? state.at, count - 1);
  const node = nodes?.[at];
  const step = node ? (state.closing ? node.closed : node.opened) : at;
  const weights = useMemo(() => weightsOf(answer, step, state.head), [answer, step, state.head]);
  const choose = (chosen) => (nodes && chosen === state.at ? change({ closing: !state.closing }) : change({ at: chosen }));
  const shared = { answer, chosen: Math.min(state.at, count - 1), onChoose: choose, onPoint: setPointed };
  return html`
    <section class=${parsing.working ? "sheet study working" : "sheet study"} aria-labelledby="tree-title" aria-busy=${parsing.working ? "true" : "false"}>
      <header><h2 id="tree-title">${nodes ? "Its tree" : "No tree"}</h2>
        <span class="note log-probability">log P = ${two(answer.log_probability)}</span></header>
      <${Bought} answer=${answer} tied=${parsing.tied} />
      ${nodes
        ? html`<${TreeDrawing} ...${shared} nodes=${nodes} at=${at} weights=${weights} />
          <p class="note">Arrow keys go from bracket to bracket. Enter, or a second click, goes from a bracket’s beginning to its end.</p>`
        : html`<${Symbols} ...${shared} at=${at} />`}
    </section>
    <${Looked} answer=${answer} working=${parsing.working} node=${node} step=${step} weights=${weights} state=${state} change=${change} />`;
}

// What the constraint buys: with the switch off, beside what was written without it.
function Bought({ answer, tied }) {
  if (answer.constrained) return null;
  const same = tied && tied.brackets === answer.brackets;
  return html`<div class="bought" role="status">
    ${answer.tree
      ? html`<p>Left free, the model wrote a tree all the same. ${tied && (same ? "With the constraint it is the same one." : `With the constraint it is another, with log P = ${two(tied.log_probability)}.`)}</p>`
      : html`<p>Left free, the model wrote no tree over these words: <b class="fault">${answer.fault}</b>.
          ${tied && ` With the constraint it writes one, with log P = ${two(tied.log_probability)}.`}</p>`}
  </div>`;
}
