// The produced tokens in a row, of which one is explained: arrow keys go through them.

import { html, useRef } from "../../vendor/htm-preact.js";
import { shownToken } from "./state.js";

export function Strip({ seen, chosen, onChoose }) {
  const group = useRef(null);
  const onKey = (event) => {
    const last = seen.produced.length - 1;
    const next = { ArrowLeft: chosen - 1, ArrowUp: chosen - 1, ArrowRight: chosen + 1, ArrowDown: chosen + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const at = Math.min(last, Math.max(0, next));
    onChoose(at);
    group.current.querySelector(`[data-at="${at}"]`).focus();
  };
  return html`<div class="token-strip" ref=${group} role="radiogroup" aria-label="Token to explain" onKeyDown=${onKey}>
    ${seen.produced.map((token, at) => html`<button type="button" role="radio" key=${at} data-at=${at} aria-checked=${at === chosen}
      tabindex=${at === chosen ? 0 : -1} onClick=${() => onChoose(at)}>${shownToken(token)}<span class="number">${
        Math.exp(seen.log_probabilities[at]).toFixed(2)}</span></button>`)}
  </div>`;
}
