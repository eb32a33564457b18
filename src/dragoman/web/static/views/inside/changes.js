// Heads switched off or pinned, the mask dropped: what that does to the translation.

import { html } from "../../vendor/htm-preact.js";
import { Diverging } from "./diverging.js";
import { changeInWords, columnsOf, headKey, headName, isOff, minus, pinOf, shownToken, signed, UNMASK } from "./state.js";

export function Changes({ seen, outcome, state, saved, problem, onChanges }) {
  const { changes, kind, column } = state;
  const key = headKey(state);
  const without = (gone) => changes.filter((change) => change !== gone);
  const toggle = (change, there) => onChanges(there ? without(change) : [...changes, change]);
  const pin = pinOf(changes, state);
  const columns = columnsOf(seen, kind);
  const pinTo = (token) => onChanges([...changes.filter((change) => change !== pin && change !== `${key}:off`), ...(token < 0 ? [] : [`${key}:pin@${token}`])]);
  const pinned = pin ? Number(pin.split("@")[1].split("/")[0]) : -1;
  return html`<section class="sheet changes" aria-labelledby="changes-title">
    <div class="sheet-head"><h2 id="changes-title">Change it</h2><span class="note">${saved
      ? "This file keeps what was changed when it was saved."
      : `The chosen head is ${headName(state)}.`}</span></div>
    ${!saved && html`<div class="controls">
      <button type="button" class="act" aria-pressed=${isOff(changes, state)} aria-keyshortcuts="o"
        onClick=${() => toggle(`${key}:off`, isOff(changes, state))}>Switch head ${headName(state)} off</button>
      <label class="field">Pin it to <select value=${pinned} onChange=${(event) => pinTo(Number(event.target.value))}>
        <option value="-1">nothing</option>
        ${columns.map((token, at) => html`<option value=${at}>${at}: ${shownToken(token)}</option>`)}</select></label>
      ${column >= 0 && column < columns.length && pinned !== column && html`<button type="button" class="act"
        onClick=${() => pinTo(column)}>Pin it to “${shownToken(columns[column])}”</button>`}
      <button type="button" class="act" aria-pressed=${changes.includes(UNMASK)}
        onClick=${() => toggle(UNMASK, changes.includes(UNMASK))}>Drop the decoder’s mask</button>
    </div>`}
    ${changes.length > 0 && html`<ul class="chips" aria-label="Changes">
      ${changes.map((change) => html`<li key=${change}>${changeInWords(change, (of) => columnsOf(seen, of))}
        ${!saved && html`<button type="button" class="quiet" aria-label=${`Undo: ${changeInWords(change, (of) => columnsOf(seen, of))}`}
          onClick=${() => onChanges(without(change))}>×</button>`}</li>`)}
      ${!saved && html`<li class="plain"><button type="button" class="quiet" onClick=${() => onChanges([])}>Undo all</button></li>`}
    </ul>`}
    <div class="outcome" aria-live="polite">
      ${outcome && changes.length > 0 ? html`<${Outcome} seen=${seen} outcome=${outcome} />` : html`<p class="note">${
        changes.length ? (problem ? "" : "Computing …") : "Nothing is changed. Switch the head off and see whether the translation needs it."}</p>`}
    </div>
  </section>`;
}

function Outcome({ seen, outcome }) {
  const changes = outcome.after.map((after, at) => after - outcome.before[at]);
  const largest = Math.max(1e-9, ...changes.map(Math.abs));
  return html`<p class="note">log P of “${seen.translation}”: ${minus(outcome.log_probability_before)} → ${minus(outcome.log_probability_after)}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Change of each token"><table class="by-token">
      <thead><tr><th>Token</th>${seen.produced.map((token) => html`<td>${shownToken(token)}</td>`)}</tr></thead>
      <tbody><tr><th>log P</th>${outcome.before.map((before) => html`<td class="number">${minus(before)}</td>`)}</tr>
        <tr><th>change</th>${changes.map((change) => html`<td class="number">${signed(change)}<${Diverging} value=${change} largest=${largest} /></td>`)}</tr></tbody>
    </table></div>`;
}
