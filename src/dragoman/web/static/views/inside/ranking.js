// Which heads matter: each switched off alone, and measured. What a head looks like says little of that.

import { html, useState } from "../../vendor/htm-preact.js";
import { Diverging, DivergingScale } from "./diverging.js";
import { headKey, headName, signed } from "./state.js";

const LISTED = 10;

export function Ranking({ heads, effects, largest, state, progress, saved, sharpest, onMeasure, onChoose }) {
  const [all, setAll] = useState(false);
  const byKey = new Map(heads.map((head) => [headKey(head), head]));
  const ranked = [...effects].map(([key, change]) => ({ ...byKey.get(key), change })).sort((one, other) => Math.abs(other.change) - Math.abs(one.change));
  const complete = effects.size === heads.length;
  const own = effects.get(headKey(state));
  return html`<section class="sheet ranking" aria-labelledby="cause-title">
    <div class="sheet-head"><h2 id="cause-title">Attention is not proof of cause</h2></div>
    <p>A head that looks at a word need not bring anything from it, and another may bring the same. Only a change shows: switch
      the head off and see what the translation loses.</p>
    ${sharpest && html`<p class="beside">Head <b>${headName(state)}</b> looks hardest at <b>${sharpest.column}</b>, with ${sharpest.weight.toFixed(2)} (row
      ${" "}<b>${sharpest.row}</b>). Switched off, it changes the log-probability of the translation by
      ${" "}<strong class="own-effect" data-effect=${own ?? ""}>${own === undefined ? "…" : signed(own, 3)}</strong>.</p>`}
    ${!saved && !complete && html`<p><button type="button" class="act" onClick=${onMeasure} disabled=${progress !== null}>
      ${progress === null ? `Measure all ${heads.length} heads` : `Measuring: ${progress}`}</button></p>`}
    ${ranked.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Heads by measured effect"><table class="ranked">
      <thead><tr><th>Rank</th><th>Head</th><th class="number">change in log P when off</th><th><span class="unseen">size</span></th><th class="number optional">entropy</th></tr></thead>
      <tbody>${ranked.slice(0, all ? undefined : LISTED).map((head, at) => html`<tr key=${headKey(head)} class=${headKey(head) === headKey(state) ? "best" : ""}>
        <td>${at + 1}</td>
        <td><button type="button" class="quiet" onClick=${() => onChoose(head)}>${headName(head)}</button></td>
        <td class="number">${signed(head.change, 3)}</td>
        <td class="bars"><${Diverging} value=${head.change} largest=${largest} /></td>
        <td class="number optional">${head.entropy.toFixed(2)}</td></tr>`)}</tbody>
    </table></div>
    <${DivergingScale} largest=${largest} />
    ${ranked.length > LISTED && html`<p><button type="button" class="quiet" aria-expanded=${all} onClick=${() => setAll(!all)}>
      ${all ? "Show fewer" : `Show all ${ranked.length}`}</button></p>`}`}
    ${complete && heads.length > 2 && html`<p class="note">How sharply a head looks (low entropy) against how much it matters, over
      ${" "}all ${heads.length} heads: rank correlation <span class="correlation">${correlation(ranked).toFixed(2).replace("-", "−")}</span>.
      1 would mean that looks tell what matters.</p>`}
  </section>`;
}

// Spearman's, between −entropy and the size of the effect. Equal values share their mean rank.
export function correlation(heads) {
  const [one, other] = [ranks(heads.map(({ entropy }) => -entropy)), ranks(heads.map(({ change }) => Math.abs(change)))];
  const mean = (heads.length - 1) / 2;
  const product = (a, b) => a.reduce((sum, value, at) => sum + (value - mean) * (b[at] - mean), 0);
  return product(one, other) / (Math.sqrt(product(one, one) * product(other, other)) || 1);
}

function ranks(values) {
  const order = values.map((_, at) => at).sort((one, other) => values[one] - values[other]);
  const found = new Array(values.length);
  for (let first = 0; first < order.length; ) {
    let last = first;
    while (last + 1 < order.length && values[order[last + 1]] === values[order[first]]) last += 1;
    for (let at = first; at <= last; at += 1) found[order[at]] = (first + last) / 2;
    first = last + 1;
  }
  return found;
}
