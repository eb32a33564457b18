// One scale for all effects: from the middle, to the left what lowers, to the right what raises.

import { html } from "../../vendor/htm-preact.js";

export function Diverging({ value, largest }) {
  const share = Math.min(1, Math.abs(value) / (largest || 1));
  return html`<span class="diverging" aria-hidden="true"><span class=${value < 0 ? "lowers" : "raises"} style=${{ width: `${50 * share}%` }}></span></span>`;
}

export function DivergingScale({ largest, digits = 2, lowers = "lowers log P", raises = "raises it" }) {
  return html`<p class="diverging-scale"><span>−${largest.toFixed(digits)} ${lowers}</span>
    <span class="diverging" aria-hidden="true"><span class="lowers" style=${{ width: "50%" }}></span><span class="raises" style=${{ width: "50%" }}></span></span>
    <span>${raises} +${largest.toFixed(digits)}</span></p>`;
}
