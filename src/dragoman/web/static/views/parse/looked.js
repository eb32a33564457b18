// What one step looked at, in words and numbers: which step it is, which head, and the words with the most weight.

import { html, useState } from "../../vendor/htm-preact.js";
import { HeadChoice } from "../../attention.js";
import { three, two } from "../numbers.js";
import { percent } from "../translate/words.js";
import { columnsOf } from "./state.js";

const LISTED = 8;

export function Looked({ answer, working, node, step, weights, state, change }) {
  const [all, setAll] = useState(false);
  const columns = columnsOf(answer);
  const ranked = weights ? columns.map((word, at) => ({ word, at, weight: weights[at] })).sort((one, other) => other.weight - one.weight) : [];
  const bracket = node && node.opened !== node.closed;
  const end = (value, text) => html`<label><input type="radio" name="end" checked=${state.closing === value} onChange=${() => change({ closing: value })} /> ${text}</label>`;
  return html`<section class=${working ? "sheet study looked working" : "sheet study looked"} aria-labelledby="looked-title">
    <header><h2 id="looked-title">What it looked at</h2></header>
    <p class="which">${inWords(answer, node, step, state.closing)}</p>
    <div class="controls">
      <${HeadChoice} layers=${answer.layers} heads=${answer.heads} layer=${state.layer ?? answer.layer} head=${state.head < answer.heads ? state.head : -1}
        onChoose=${(layer, head) => change({ head, layer: layer === answer.layer ? state.layer : layer })} />
      ${bracket && html`<fieldset class="choice-row"><legend class="unseen">Which end of the bracket</legend>${end(false, "Opening")}${end(true, "Closing")}</fieldset>`}
    </div>
    ${weights && html`
      <p class="unseen" aria-live="polite">${ranked.slice(0, 3).map(({ word, weight }) => `${word} ${two(weight)}`).join(", ")}</p>
      <table class="bars" data-layer=${answer.layer}><caption class="unseen">Words by weight, layer ${answer.layer}</caption>
        <thead class="unseen"><tr><th scope="col">word</th><th scope="col">weight</th><td></td></tr></thead>
        <tbody>${ranked.slice(0, all ? undefined : LISTED).map(({ word, at, weight }) => html`<tr key=${at} data-column=${at}>
          <th scope="row">${word}</th><td class="number">${three(weight)}</td>
          <td class="bar"><i style=${{ width: `${100 * weight}%` }}></i></td></tr>`)}</tbody></table>
      ${ranked.length > LISTED && html`<p><button type="button" class="quiet" aria-expanded=${all ? "true" : "false"} onClick=${() => setAll(!all)}>
        ${all ? "Show fewer" : `Show all ${ranked.length}`}</button></p>`}
      <p class="note">The weights of a step sum to 1 over the words and the end of the sentence; in the tree the word with the
        most stands out most. They are what the step that writes the symbol looked at, not proof of what it was decided by.</p>`}
  </section>`;
}

function inWords(answer, node, step, closing) {
  if (step === null) return html`<b>${node.label}</b> is the root of every tree: the model does not write it, so nothing was looked at.`;
  const when = html`step <b data-shown="step">${step + 1}</b> of ${answer.log_probabilities.length}, probability ${percent(Math.exp(answer.log_probabilities[step]))}`;
  const symbol = html`<code>${answer.symbols[step]}</code>`;
  if (!node) return html`${symbol}: ${when}.`;
  const words = columnsOf(answer).slice(node.first, node.last + 1).join(" ");
  const what = node.opened === node.closed ? "the tag of" : `the ${closing ? "closing" : "opening"} bracket of ${node.label} over`;
  return html`${symbol}, ${what} “${words}”: ${when}.`;
}
