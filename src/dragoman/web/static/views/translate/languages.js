// Which languages, and the other way round. What no run translates may be reached through a third language, the pivot.

import { html, useEffect, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";

const MANY = 20; // languages in a list; of more, one types what one looks for

const waysOf = (about, pivoting) => (pivoting ? [...about.pairs, ...about.pivots] : about.pairs);

// What the service says of two languages; a `pivot` is in it where no run translates between them.
export const wayOf = (about, { source, target }) =>
  waysOf(about, true).find((way) => way.source === source && way.target === target);

export const sourcesOf = (about) => [...new Set(waysOf(about, true).map((way) => way.source))];

// A language's name by its code.
export function namesIn(about) {
  const names = new Map(waysOf(about, true).flatMap((way) => [[way.source, way.source_name], [way.target, way.target_name]]));
  return (code) => names.get(code) ?? code;
}

const ENOUGH = 12; // characters to tell a language by
const SURE = 60; // of 100
const PAUSE = 600;

// Where the text is plainly in another language than the one it is translated from, a way to that.
export function LooksLike({ about, text, chosen, translation, onChoose }) {
  const [found, setFound] = useState({ text: "", language: "" });
  const sources = sourcesOf(about);
  const isAuto = chosen.source === "auto";
  const asks = !isAuto && sources.length > 1 && text.trim().length >= ENOUGH;
  useEffect(() => {
    if (!asks) return undefined;
    const control = new AbortController();
    const timer = setTimeout(() => api.detect(text, control.signal).then(
      (seen) => setFound({ text, language: seen && seen.confidence >= SURE ? seen.language : "" }), () => {}, // it is a hint
    ), PAUSE);
    return () => { clearTimeout(timer); control.abort(); };
  }, [text, asks]);
  const own = isAuto ? (translation.detected?.confidence >= SURE && translation.detected.language) : asks ? found.language : "";
  if (!own || !text.trim() || !sources.includes(own) || own === (isAuto ? translation.detected.source : chosen.source)) return null;
  const names = namesIn(about);
  const to = own === chosen.target ? (isAuto ? waysOf(about, true).find((way) => way.source === own).target : chosen.source) : chosen.target;
  return html`<p class="looks-like" role="status">This looks like ${names(own)}.
    <button type="button" class="quiet" onClick=${() => onChoose(own, to)}>Translate from ${names(own)}${to === chosen.target ? "" : ` into ${names(to)}`}</button></p>`;
}

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
  const taken = from ? reachable.filter((way) => way.source === from) : reachable; // until the text is there: all that it may take
  const isDirect = new Set(taken.filter((way) => !way.pivot).map((way) => way.target));
  const through = new Map(taken.filter((way) => way.pivot && !isDirect.has(way.target)).map((way) => [way.target, way.pivot_name]));
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
