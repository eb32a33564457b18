// The frame of a lesson: text beside its widget, and what its widgets share.

import { html } from "../../vendor/htm-preact.js";
import { addressOf } from "../../router.js";
import { Equation } from "./equations.js";

// frame: {id, number, title}, its place among the lessons. `wide`: the widget stands below the text, over both columns.
export function Lesson({ frame, equation, link, text, wide = false, children }) {
  const { id, number, title } = frame;
  return html`<section class=${`sheet study lesson${wide ? " wide" : ""}`} id=${id} aria-labelledby=${`${id}-title`}>
    <div class="telling">
      <h2 id=${`${id}-title`} tabindex="-1"><span class="number-of">${number}</span> ${title}</h2>
      ${text}
      ${equation && html`<${Equation} name=${equation} />`}
      ${link && html`<p class="link-line"><a class="inside-link" href=${link}>The same in Inside</a></p>`}
    </div>
    <div class="widget">${children}</div>
  </section>`;
}

export function insideAddress(question, values) {
  return addressOf("inside", { from: question.source, to: question.target, text: question.text, ...values });
}

// Units, or words, to choose one from.
export function TokenRow({ label, units, chosen, onChoose, weights = null }) {
  return html`<div class="tokens" role="group" aria-label=${label}>
    ${units.map(({ text }, at) => html`<button type="button" key=${at} class="token" aria-pressed=${at === chosen ? "true" : "false"}
      style=${weights ? { "--weight": weights[at].toFixed(4) } : {}} onClick=${() => onChoose(at)}>${text}</button>`)}
  </div>`;
}

// A number a row as bars, with what stands beside them. Bars are of `most`.
export function Bars({ label, rows, most = 1, digits = 3 }) {
  return html`<table class="bars"><caption class="unseen">${label}</caption><tbody>
    ${rows.map(({ name, value, also, marked }, at) => html`<tr key=${at} class=${marked ? "marked" : ""}>
      <th scope="row">${name}</th>
      ${also !== undefined && html`<td class="number also">${also}</td>`}
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

// One of a few, all in sight. options: [[value, label], ...]
export function Segments({ label, name, value, options, onChoose }) {
  return html`<fieldset class="segments"><legend class="unseen">${label}</legend>
    ${options.map(([own, text]) => html`<label key=${own}><input type="radio" name=${name} checked=${own === value} onChange=${() => onChoose(own)} /><span>${text}</span></label>`)}
  </fieldset>`;
}

export function Switch({ on, label, onSwitch }) {
  return html`<button type="button" class="switch" role="switch" aria-checked=${on ? "true" : "false"} onClick=${() => onSwitch(!on)}>${label}</button>`;
}

// A vector as a row of cells: blue above 0, amber below; `most` is the number of the strongest colour.
export function Strip({ values, most, label, share = 1 }) {
  const top = most ?? (Math.max(...values.map(Math.abs)) || 1);
  return html`<svg class="strip" viewBox=${`0 0 ${values.length} 1`} preserveAspectRatio="none" role="img" aria-label=${label}
    data-values=${values.map((value) => Number(value.toPrecision(5))).join(" ")}>
    ${values.map((value, at) => html`<rect key=${at} x=${at} width="1" height="1" class=${value < 0 ? "below" : "above"}
      fill-opacity=${(share * Math.min(1, Math.abs(value) / top)).toFixed(3)} />`)}
  </svg>`;
}

export const strongest = (vectors) => Math.max(1e-9, ...vectors.map((values) => Math.max(...values.map(Math.abs))));
export const minus = (value, digits = 3) => value.toFixed(digits).replace("-", "−");
