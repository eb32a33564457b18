// What the model says, and what it says with the changes: above everything, wherever one scrolls to.

import { html, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { differences } from "./differences.js";
import { minus, signed } from "./state.js";

export function Said({ seen, outcome, changes, problem, onHeight }) {
  const bar = useRef(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => onHeight(Math.ceil(entry.borderBoxSize[0].blockSize)));
    observer.observe(bar.current);
    return () => observer.disconnect();
  }, []);
  const changed = changes.length > 0;
  const now = changed && outcome ? outcome.translation ?? "" : null;
  const [before, after] = now === null ? [[{ text: seen.translation, marked: false }], null] : differences(seen.translation, now);
  return html`<section ref=${bar} class="sheet said-bar" aria-label="What it says">
    <p><span class="label">It says</span> <span class="says">${before.map(({ text, marked }) => (marked ? html`<del>${text}</del>` : text))}</span>
      <span class="number log-probability">log P = ${minus(seen.log_probability)}</span></p>
    ${changed && html`<p aria-live="polite"><span class="label">Now it says</span>
      ${now === null ? html`<span class="note">${problem ? "–" : "Computing …"}</span>` : html`<span class="now-says">${after.length
        ? after.map(({ text, marked }) => (marked ? html`<ins>${text}</ins>` : text)) : html`<ins>nothing</ins>`}</span>
        <span class="number">${now === seen.translation && html`<span class="note">the same; </span>`}log P of the first
          ${" "}<strong class="delta" data-change=${outcome.change}>${signed(outcome.change)}</strong></span>`}</p>`}
  </section>`;
}
