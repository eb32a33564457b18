// The glossary of two languages: terms that a translation must use. It stays in this browser and goes with each request.

import { html, useEffect, useMemo, useRef, useState } from "../../vendor/htm-preact.js";
import { keep, kept } from "./kept.js";
import { number } from "./words.js";

const NAME = "dragoman-glossary";
const MOST = 1000; // terms, that a request may have
const LONGEST = 200; // characters of a term

const NONE = [];

export function useGlossary({ source, target }) {
  const [all, setAll] = useState(() => kept(NAME, {}));
  const name = `${source} ${target}`;
  const terms = useMemo(() => all[name] ?? NONE, [all, name]);
  const put = (own) => {
    const now = { ...kept(NAME, {}), [name]: own };
    keep(NAME, now);
    setAll(now);
  };
  return {
    terms,
    // How many of them were new.
    add: (more) => {
      const known = new Map(terms.map((term) => [term.source, term]));
      more.forEach((term) => known.set(term.source, term));
      put([...known.values()].slice(0, MOST));
      return Math.min(MOST, known.size) - terms.length;
    },
    remove: (wanted) => put(terms.filter((term) => term.source !== wanted)),
    clear: () => put([]),
  };
}

// The terms of a file: a source term and its target on each line, between them a tab, or as CSV with , or ; between.
export function termsIn(text) {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim() && !line.startsWith("# "));
  const separator = ["\t", ";", ","].find((one) => lines.length && lines.every((line) => line.includes(one))) ?? "\t";
  const rows = lines.map((line) => cells(line, separator));
  if (rows.length && /^(source|term)/i.test(rows[0][0]) && /^(target|translation)/i.test(rows[0][1] ?? "")) rows.shift();
  return rows.filter(([source, target]) => source?.trim() && source.length <= LONGEST && target !== undefined)
    .map(([source, target]) => ({ source: source.trim(), target: target.trim() }));
}

function cells(line, separator) {
  if (separator === "\t") return line.split("\t");
  const found = [...line.matchAll(new RegExp(`(?:^|${separator})(?:"((?:[^"]|"")*)"|([^${separator}]*))`, "g"))];
  return found.map(([, quoted, plain]) => (quoted === undefined ? plain : quoted.replaceAll('""', '"')));
}

// `offered`: {source, target} of a term that was selected in the text.
export function GlossaryPanel({ glossary, names, offered }) {
  const [open, setOpen] = useState(false);
  const [draft, setDraft] = useState({ source: "", target: "" });
  const [said, setSaid] = useState("");
  const target = useRef(null);
  const file = useRef(null);
  useEffect(() => {
    if (!offered) return;
    setOpen(true);
    setDraft({ source: offered.source, target: offered.target });
    setTimeout(() => { target.current?.focus(); target.current?.select(); }, 0);
  }, [offered]);
  const { terms } = glossary;
  const add = (event) => {
    event.preventDefault();
    glossary.add([{ source: draft.source.trim(), target: draft.target.trim() }]);
    setSaid(`“${draft.source.trim()}” is in the glossary: the text is translated with it.`);
    setDraft({ source: "", target: "" });
  };
  const chosen = async (event) => {
    const [one] = event.target.files;
    event.target.value = "";
    if (!one) return;
    const found = termsIn(await one.text());
    if (!found.length) setSaid(`${one.name} has no terms: write a source term, a tab and its translation on each line.`);
    else setSaid(`${number(glossary.add(found))} terms are new, of ${number(found.length)} in ${one.name}.`);
  };
  const field = (side, label) => html`<label>${label} <input type="text" value=${draft[side]} maxlength=${side === "source" ? LONGEST : 1000} dir="auto" ref=${side === "target" ? target : undefined}
    onInput=${(event) => setDraft({ ...draft, [side]: event.target.value })} /></label>`;
  return html`<details class="sheet folded glossary" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><h2>Glossary</h2><span class="hint">${terms.length ? `${number(terms.length)} ${terms.length === 1 ? "term" : "terms"}` : "words that must be translated in a certain way"}, ${names}</span></summary>
    <div class="folded-body">
      <form class="term-form" onSubmit=${add}>
        ${field("source", "Term")}${field("target", "Its translation")}
        <button type="submit" disabled=${!draft.source.trim()}>Add</button>
      </form>
      <p class="note">Several forms with | between them; none: the term stays as it is. It is kept in this browser; files are translated without it.</p>
      <p role="status" class="note">${said}</p>
      ${terms.length > 0 && html`<ul class="terms" aria-label="Terms">${terms.map((term) => html`<li key=${term.source}>
        <b dir="auto">${term.source}</b> <span aria-hidden="true">→</span> <span dir="auto">${term.target || html`<i>stays as it is</i>`}</span>
        <button type="button" class="quiet" aria-label=${`Remove ${term.source}`} onClick=${() => glossary.remove(term.source)}>Remove</button></li>`)}</ul>`}
      <button type="button" class="quiet" onClick=${() => file.current.click()}>Import a file</button>
      <input type="file" ref=${file} hidden accept=".tsv,.csv,.txt" aria-label="Glossary file" onChange=${chosen} />
      ${terms.length > 1 && html`<button type="button" class="quiet" onClick=${() => { glossary.clear(); setSaid("The glossary is empty."); }}>Remove all</button>`}
    </div>
  </details>`;
}
