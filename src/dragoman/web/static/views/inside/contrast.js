// Why this word and not that one: what every token speaks for, by gradients and by leaving it out.

import { html, useEffect, useState } from "../../vendor/htm-preact.js";
import { Failure } from "../failure.js";
import { useAnswer } from "./answer.js";
import { Diverging, DivergingScale } from "./diverging.js";
import { positionOf, shownToken, signed } from "./state.js";
import { Strip } from "./strip.js";

export function Contrast({ data, seen, state, change }) {
  const at = positionOf(seen, state.at);
  const instead = state.token ? [state.token] : state.instead || null;
  const question = { ...seen.question, position: at, instead };
  const { answer: found, problem, retry } = useAnswer((signal) => data.contrast(question, signal), JSON.stringify(question));
  const { answer: lens } = useAnswer((signal) => data.lens({ ...seen.question, changes: [] }, signal), JSON.stringify(seen.question));
  const others = (lens?.positions[at].at(-1).candidates ?? []).filter(({ token }) => token !== seen.produced[at]);
  return html`<section class="sheet contrast" aria-labelledby="contrast-title">
    <div class="sheet-head"><h2 id="contrast-title">Why this word and not that one</h2>
      <span class="note">${data.saved ? "This file keeps the one comparison that was made when it was saved." : "Of the model as it is, without changes."}</span></div>
    ${!data.saved && html`<${Strip} seen=${seen} chosen=${at} onChoose=${(position) => change({ at: position, instead: "", token: "" })} />
      <${Others} seen=${seen} at=${at} others=${others} state=${state} change=${change} />`}
    ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
    ${!found && !problem && html`<p class="note">Computing …</p>`}
    ${found && html`<${Answer} found=${found} />`}
  </section>`;
}

function Others({ seen, at, others, state, change }) {
  const [words, setWords] = useState(state.instead);
  useEffect(() => setWords(state.instead), [state.instead, at]);
  const compare = (event) => {
    event.preventDefault();
    if (words.trim()) change({ instead: words.trim(), token: "" });
  };
  return html`<div class="controls others">
    <span>Why “${shownToken(seen.produced[at])}”, and not</span>
    ${others.map(({ token, probability }) => html`<button type="button" class="act" key=${token} aria-pressed=${state.token === token}
      onClick=${() => change({ token, instead: "", at })}>${shownToken(token)} <span class="number">${probability.toFixed(2)}</span></button>`)}
    <form onSubmit=${compare}><label class="field">or <input type="text" value=${words} placeholder="other words" aria-label="Other words" maxlength="200"
      onInput=${(event) => setWords(event.target.value)} /></label> <button type="submit" class="act">Compare</button></form>
  </div>`;
}

const said = (tokens) => tokens.map(shownToken).join(" ").replaceAll(" ·", "");

function Answer({ found }) {
  const [one, other] = [said(found.this), said(found.that)];
  const every = [...found.source, ...found.before];
  const largest = (name) => Math.max(1e-9, ...every.map((token) => Math.abs(token[name] ?? 0)));
  const most = { gradient_input: largest("gradient_input"), gradient_norm: largest("gradient_norm"), erasure: largest("erasure") };
  return html`<p class="verdict">“<b>${one}</b>” has probability <span class="number">${Math.exp(found.this_log_probability).toFixed(4)}</span> here,
      “<b>${other}</b>” <span class="number">${Math.exp(found.that_log_probability).toFixed(4)}</span>: a difference of
      ${" "}<strong class="difference" data-difference=${found.difference}>${signed(found.difference, 3)}</strong> in log P.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="What each token speaks for"><table class="influences">
      <thead><tr><th>Token</th><th colspan="2">gradient × input</th><th colspan="2">left out</th><th colspan="2">gradient, size</th></tr></thead>
      ${[["Source", found.source], ["Said before", found.before]].map(([title, tokens]) => html`<tbody key=${title}>
        <tr class="part"><th colspan="7" scope="rowgroup">${title}</th></tr>
        ${tokens.map((token, row) => html`<tr key=${row}><th scope="row">${shownToken(token.token)}</th>
          <td class="bars"><${Diverging} value=${token.gradient_input} largest=${most.gradient_input} /></td><td class="number">${signed(token.gradient_input, 3)}</td>
          <td class="bars">${token.erasure !== null && html`<${Diverging} value=${token.erasure} largest=${most.erasure} />`}</td><td class="number">${token.erasure === null ? "–" : signed(token.erasure, 3)}</td>
          <td class="bars"><span class="gauge"><span style=${{ width: `${(100 * token.gradient_norm) / most.gradient_norm}%` }}></span></span></td><td class="number">${token.gradient_norm.toFixed(2)}</td></tr>`)}
      </tbody>`)}
    </table></div>
    <${DivergingScale} largest=${most.erasure} digits=${3} lowers=${`for “${other}”`} raises=${`for “${one}”`} />
    <p class="note">Left out: what the difference loses without the token. The scale is that of leaving out; gradient × input has its own, of at most
      ${" "}${most.gradient_input.toFixed(3)}. Where the two disagree, the gradient sees a small step and leaving out sees a large one.</p>`;
}
