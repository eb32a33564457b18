// One sentence: how sure it is, other ways to say the whole of it, and what was made of sentences like it before.

import { html, useEffect, useState } from "../../vendor/htm-preact.js";
import { doubtOf, saidOf } from "./trust.js";
import { percent } from "./words.js";

const WAYS = 4; // of saying it, the one that stands there among them

// The sentence that the caret is in; of a single one, that.
export function SentencePanel({ about, translation, current, corrections }) {
  const { segments, state } = translation;
  const index = segments.length === 1 ? 0 : (current?.segment ?? -1);
  const segment = segments[index];
  if (!segment || state !== "done" || !/\p{L}/u.test(segment.source)) return null;
  return html`<section class="of-sentence" aria-label="The sentence">
    ${(segments.length > 1 || segment.confidence !== null || doubtOf(segment) || segment.changed) && html`<p class="said-of" role="status">${saidOf(segment, index, segments.length)}</p>`}
    ${segment.suggestion && segment.suggestion.target !== segment.text && html`<p class="suggestion">Similar (${percent(segment.suggestion.score)}): “${segment.suggestion.source}” was corrected to
      “${segment.suggestion.target}” <button type="button" class="quiet" onClick=${() => translation.take(index, { text: segment.suggestion.target, tokens: null })}>Use it</button></p>`}
    ${corrections.said(index) && html`<p class="kept-as" role="status">${corrections.said(index)}
      ${corrections.isKept(index) && html` <button type="button" class="quiet" onClick=${() => corrections.forget(index)}>Forget it</button>`}</p>`}
    <${Ways} key=${`${segment.start} ${segment.source}`} index=${index} translation=${translation} most=${Math.min(WAYS, about.alternatives_limit + 1)} />
  </section>`;
}

function Ways({ index, translation, most }) {
  const [found, setFound] = useState(null);
  const segment = translation.segments[index];
  useEffect(() => {
    const control = new AbortController();
    translation.others(index, most, control.signal).then(setFound, () => {}); // without them the translation stands
    return () => control.abort();
  }, []);
  const others = (found ?? []).filter(({ text }, at, all) => text.trim() && text !== segment.text && all.findIndex((one) => one.text === text) === at).slice(0, most - 1);
  if (!others.length) return null;
  return html`<h2>In other words</h2>
    <ul class="ways" lang=${translation.languages.target}>${others.map((one) => html`<li key=${one.text}>
      <button type="button" class="way" dir="auto" onClick=${() => translation.take(index, one)}>${one.text}</button></li>`)}</ul>`;
}
