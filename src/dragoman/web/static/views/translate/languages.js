// Which languages, and the other way round.

import { html } from "../../vendor/htm-preact.js";

export function Languages({ about, chosen, detected, onChoose, onSwap }) {
  const { pairs } = about;
  const names = new Map(pairs.flatMap((pair) => [[pair.source, pair.source_name], [pair.target, pair.target_name]]));
  const sources = [...new Set(pairs.map((pair) => pair.source))];
  const reachable = pairs.filter((pair) => chosen.source === "auto" || pair.source === chosen.source);
  const targets = [...new Set(reachable.map((pair) => pair.target))];
  const from = chosen.source === "auto" ? detected?.source : chosen.source;
  const back = pairs.some((pair) => pair.source === chosen.target && pair.target === from);
  const auto = detected ? `Detected: ${names.get(detected.source) ?? detected.source}` : "Detect language";
  return html`<div class="languages">
    <label class="choice">
      <span class="unseen">From</span>
      <select value=${chosen.source} onChange=${(event) => onChoose(event.target.value, chosen.target)}>
        ${sources.length > 1 && html`<option value="auto">${auto}</option>`}
        ${sources.map((code) => html`<option value=${code}>${names.get(code)}</option>`)}
      </select>
    </label>
    <button type="button" class="swap" onClick=${onSwap} disabled=${!back} aria-label="Swap languages"
      title=${back ? "Swap languages" : "No run is served for the other direction"}>
      <span aria-hidden="true">⇄</span>
    </button>
    <label class="choice">
      <span class="unseen">To</span>
      <select value=${chosen.target} onChange=${(event) => onChoose(chosen.source, event.target.value)}>
        ${targets.map((code) => html`<option value=${code}>${names.get(code)}</option>`)}
      </select>
    </label>
  </div>`;
}

// A pair that is served, as near to the wish as there is.
export function chooseLanguages(about, source, target) {
  const { pairs } = about;
  const sources = new Set(pairs.map((pair) => pair.source));
  if (source === "auto" && sources.size > 1) {
    const wanted = pairs.find((pair) => pair.target === target) ?? pairs[0];
    return { source: "auto", target: wanted.target };
  }
  const pair =
    pairs.find((one) => one.source === source && one.target === target) ??
    pairs.find((one) => one.source === source) ??
    pairs.find((one) => one.target === target) ??
    pairs[0];
  return { source: pair.source, target: pair.target };
}
