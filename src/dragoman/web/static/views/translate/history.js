// What was translated before. It stays in this browser: the service is not told of it.

import { html, useEffect, useState } from "../../vendor/htm-preact.js";
import { keep, kept } from "./kept.js";

const NAME = "dragoman-history";
const SETTLED = 2500; // milliseconds that a translation stands before it is kept
const MOST = 50;
const MOST_CHARACTERS = 20_000; // of a text

export function useHistory(translation, text, languages) {
  const [state, setState] = useState(() => kept(NAME, { isKept: true, entries: [] }));
  const put = (change) => {
    const now = { ...kept(NAME, state), ...change(kept(NAME, state)) };
    keep(NAME, now);
    setState(now);
  };
  const entry = { source: translation.languages.source, target: languages.target, text: text.trim(), translation: translation.text };
  useEffect(() => {
    if (!state.isKept || translation.state !== "done" || !entry.text || !entry.translation || text.length > MOST_CHARACTERS) return undefined;
    const timer = setTimeout(() => put(({ entries }) => ({ entries: [{ ...entry, at: Date.now() }, ...entries.filter((one) => !isReplacedBy(one, entry))].slice(0, MOST) })), SETTLED);
    return () => clearTimeout(timer);
  }, [translation.state, entry.translation, entry.text, entry.source, entry.target, state.isKept]);
  return {
    ...state,
    forget: (wanted) => put(({ entries }) => ({ entries: entries.filter((one) => one.at !== wanted.at) })),
    clear: () => put(() => ({ entries: [] })),
    setKept: (isKept) => put(({ entries }) => ({ isKept, entries: isKept ? entries : [] })),
  };
}

// The same text, or what it was while it was being typed.
const isReplacedBy = (old, { source, target, text }) =>
  old.source === source && old.target === target && (old.text === text || (text.startsWith(old.text) && Date.now() - old.at < 120_000));

export function HistoryPanel({ history, names, onOpen }) {
  const { entries, isKept } = history;
  return html`<details class="sheet folded history">
    <summary><h2>History</h2><span class="hint">${isKept ? `${entries.length} kept in this browser, and nowhere else` : "nothing is kept"}</span></summary>
    <div class="folded-body">
      ${entries.length > 0 && html`<ul class="entries">${entries.map((one) => html`<li key=${one.at}>
        <button type="button" class="entry" onClick=${() => onOpen(one)}>
          <span class="hint">${names(one.source)} → ${names(one.target)}</span>
          <span dir="auto" class="entry-text">${one.text.slice(0, 160)}</span><span dir="auto" class="entry-text said">${one.translation.slice(0, 160)}</span></button>
        <button type="button" class="quiet" aria-label=${`Forget “${one.text.slice(0, 40)}”`} onClick=${() => history.forget(one)}>Forget</button></li>`)}</ul>`}
      ${!entries.length && isKept && html`<p class="note">What you translate appears here a few seconds after you have stopped typing.</p>`}
      <p class="history-foot"><label><input type="checkbox" checked=${isKept} onChange=${(event) => history.setKept(event.target.checked)} /> Keep a history in this browser</label>
        ${entries.length > 0 && html`<button type="button" class="quiet" onClick=${history.clear}>Forget all</button>`}</p>
    </div>
  </details>`;
}
