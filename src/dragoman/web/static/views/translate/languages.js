// Which languages, and the other way round. What no run translates may be reached through a third language, the pivot.

import { html, useState } from "../../vendor/htm-preact.js";

const MANY = 20; // languages in a list; of more, one types what one looks for

const waysOf = (about, pivoting) => (pivoting ? [...about.pairs, ...about.pivots] : about.pairs);

// What the service says of two languages; a `pivot` is in it where no run translates between them.
export const wayOf = (about, { source, target }) =>
  waysOf(about, true).find((way) => way.source === source && way.target === target);

export function Languages({ about, chosen, detected, pivoting = false, onChoose, onSwap }) {
  const ways = waysOf(about, pivoting);
  const names = new Map(ways.flatMap((way) => [[way.source, way.source_name], [way.target, way.target_name]]));
  const byName = (one, other) => names.get(one).localeCompare(names.get(other), "en");
  const sources = [...new Set(ways.map((way) => way.source))].sort(byName);
  const reachable = ways.filter((way) => chosen.source === "auto" || way.source === chosen.source);
  const targets = [...new Set(reachable.map((way) => way.target))].sort(byName);
  const from = chosen.source === "auto" ? detected?.source : chosen.source;
  const back = ways.some((way) => way.source === chosen.target && way.target === from);
  const auto = detected ? `Detected: ${names.get(detected.source) ?? detected.source}` : "Detect language";
  const through = new Map(reachable.filter((way) => way.pivot && way.source === from).map((way) => [way.target, way.pivot_name]));
  const said = (code) => (through.has(code) ? `${names.get(code)} (via ${through.get(code)})` : names.get(code));
  return html`<div class="languages">
    <${Choice} label="From" value=${chosen.source} codes=${sources} said=${(code) => names.get(code)}
      auto=${sources.length > 1 ? auto : ""} onChoose=${(code) => onChoose(code, chosen.target)} />
    <button type="button" class="swap" onClick=${onSwap} disabled=${!back} aria-label="Swap languages"
      title=${back ? "Swap languages" : "No run is served for the other direction"}>
      <span aria-hidden="true">⇄</span>
    </button>
    <${Choice} label="To" value=${chosen.target} codes=${targets} said=${said} onChoose=${(code) => onChoose(chosen.source, code)} />
  </div>`;
}

// A list in the order of names. Beside one of many languages is a field: what is typed there is looked for in their names
// and codes, the list has only what was found and what is chosen, and Enter takes the first.
function Choice({ label, value, codes, said, auto, onChoose }) {
  const [wanted, setWanted] = useState("");
  const needle = wanted.trim().toLowerCase();
  const begins = (code) => code === needle || said(code).toLowerCase().startsWith(needle);
  const holds = (code) => !begins(code) && said(code).toLowerCase().includes(needle);
  const found = needle ? [...codes.filter(begins), ...codes.filter(holds)] : codes;
  const shown = value === "auto" || found.includes(value) ? found : [value, ...found];
  const take = (code) => {
    setWanted("");
    onChoose(code);
  };
  const onKey = (event) => {
    if (event.key === "Enter" && needle && found.length) take(found[0]);
    else if (event.key === "Escape" && wanted) setWanted("");
    else return;
    event.preventDefault();
  };
  const count = found.length > 1 ? ` and ${found.length - 1} more` : "";
  return html`<div class="choice">
    <label>
      <span class="unseen">${label}</span>
      <select value=${value} onChange=${(event) => take(event.target.value)}>
        ${auto && html`<option value="auto">${auto}</option>`}
        ${shown.map((code) => html`<option key=${code} value=${code}>${said(code)}</option>`)}
      </select>
    </label>
    ${codes.length > MANY && html`<input type="search" class="find" value=${wanted} placeholder=${`Find among ${codes.length}`}
        aria-label=${`Find a language, ${label.toLowerCase()}`} onInput=${(event) => setWanted(event.target.value)} onKeyDown=${onKey} />
      <span class="found" role="status">${needle && (found.length ? `${said(found[0])}${count}` : "not served")}</span>`}
  </div>`;
}

// A pair that is served, as near to the wish as there is.
export function chooseLanguages(about, source, target, pivoting = false) {
  const ways = waysOf(about, pivoting);
  const sources = new Set(ways.map((way) => way.source));
  if (source === "auto" && sources.size > 1) {
    const wanted = ways.find((way) => way.target === target) ?? ways[0];
    return { source: "auto", target: wanted.target };
  }
  const way =
    ways.find((one) => one.source === source && one.target === target) ??
    ways.find((one) => one.source === source) ??
    ways.find((one) => one.target === target) ??
    ways[0];
  return { source: way.source, target: way.target };
}
