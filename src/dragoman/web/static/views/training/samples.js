// What each validation translated, to read how it gets better; the newest first.

import { html, useState } from "../../vendor/htm-preact.js";
import { one, three, whole } from "../numbers.js";

const AT_FIRST = 4;

export function Samples({ valid }) {
  const [all, setAll] = useState(false);
  const told = [...valid].reverse().slice(0, all ? valid.length : AT_FIRST);
  return html`<section class="sheet study" aria-label="Samples">
    <header><h2>Samples</h2><span class="hint">one validation sentence each time, translated greedily</span></header>
    <ol class="samples">${told.map((point) => html`<li key=${point.step}>
      <p class="measures"><b>step ${whole(point.step)}</b> BLEU ${one(point.bleu)}, loss ${three(point.nll)}</p>
      <dl>
        <dt>source</dt><dd dir="auto">${point.source}</dd>
        <dt>output</dt><dd dir="auto" class="output">${point.output || "(nothing)"}</dd>
        <dt>reference</dt><dd dir="auto">${point.reference}</dd>
      </dl></li>`)}</ol>
    ${valid.length > AT_FIRST && html`<button type="button" class="quiet" onClick=${() => setAll(!all)}>
      ${all ? "Show fewer" : `Show all ${valid.length}`}</button>`}
  </section>`;
}
