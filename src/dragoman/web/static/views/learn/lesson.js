// The frame of a lesson: text beside its widget, and what its widgets share.

import { html } from "../../vendor/htm-preact.js";
import { addressOf } from "../../router.js";
import { shownToken } from "../inside/state.js";
import { Equation } from "./equations.js";

export function Lesson({ number, id, title, equation, link, text, children }) {
  return html`<section class="sheet study lesson" id=${id} aria-labelledby=${`${id}-title`}>
    <div class="telling">
      <h2 id=${`${id}-title`}><span class="number-of">${number}</span> ${title}</h2>
      ${text}
      ${equation && html`<${Equation} name=${equation} />`}
      ${link && html`<p><a class="inside-link" href=${link}>The same in Inside</a></p>`}
    </div>
    <div class="widget">${children}</div>
  </section>`;
}

export function insideAddress(question, values) {
  return addressOf("inside", { from: question.source, to: question.target, text: question.text, ...values });
}

// Tokens, or words, to choose one from.
export function TokenRow({ label, tokens, chosen, onChoose, weights = null, write = shownToken }) {
  return html`<div class="tokens" role="group" aria-label=${label}>
    ${tokens.map((token, at) => html`<button type="button" key=${at} class="token" aria-pressed=${at === chosen ? "true" : "false"}
      style=${weights ? { "--weight": weights[at].toFixed(4) } : {}} onClick=${() => onChoose(at)}>${write(token)}</button>`)}
  </div>`;
}

// A number a row as bars, with what stands beside them. Bars are of `most`.
export function Bars({ label, rows, most = 1, digits = 3 }) {
  return html`<table class="bars"><caption class="unseen">${label}</caption><tbody>
    ${rows.map(({ name, value, also }, at) => html`<tr key=${at}>
      <th scope="row">${name}</th>
      ${also !== undefined && html`<td class="number hint">${also}</td>`}
      <td class="bar"><i style=${{ width: `${Math.max(0, Math.min(100, (100 * value) / most)).toFixed(2)}%` }}></i></td>
      <td class="number" data-value=${value.toFixed(6)}>${value.toFixed(digits)}</td></tr>`)}
  </tbody></table>`;
}

export function Choice({ label, value, count, onChoose }) {
  return html`<label>${label} <select value=${value} onChange=${(event) => onChoose(Number(event.target.value))}>
    ${Array.from({ length: count }, (_, at) => html`<option key=${at} value=${at}>${at}</option>`)}</select></label>`;
}

export function Slider({ label, value, least = 0, most, onMove, shown = value }) {
  return html`<label class="slider"><span>${label} <b>${shown}</b></span>
    <input type="range" min=${least} max=${most} value=${value} aria-valuetext=${String(shown)} onInput=${(event) => onMove(Number(event.target.value))} /></label>`;
}
