// What was written where it is no tree: its symbols, one after the other, each to be looked at.

import { html, useRef } from "../../vendor/htm-preact.js";

export function Symbols({ answer, at, chosen, onChoose, onPoint }) {
  const area = useRef(null);
  const move = (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -answer.symbols.length, End: answer.symbols.length };
    if (!(event.key in steps)) return;
    const to = Math.min(answer.symbols.length - 1, Math.max(0, chosen + steps[event.key]));
    onChoose(to);
    area.current.children[to].focus();
    event.preventDefault();
  };
  return html`<div class="symbols" role="listbox" aria-label="What was written" ref=${area} onKeyDown=${move}>
    ${answer.symbols.map((symbol, one) => html`<span key=${one} role="option" tabindex=${one === chosen ? 0 : -1} aria-selected=${one === chosen ? "true" : "false"}
      class=${one === at ? "shown" : ""} onMouseEnter=${() => onPoint(one)} onMouseLeave=${() => onPoint(null)} onClick=${() => onChoose(one)} onFocus=${() => onPoint(null)}>${symbol}</span>`)}
  </div>`;
}
