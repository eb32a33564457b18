// The translation, word by word: pointing at one lights what it came from, choosing one opens its alternatives.

import { html, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { Failure } from "../failure.js";
import { Alternatives } from "./alternatives.js";
import { UNSURE, doubtOf, sureness } from "./trust.js";
import { lightOf } from "./words.js";

export function TargetPane({ translation, lit, language, onPoint, tooLong, legend, children }) {
  const [open, setOpen] = useState(null); // {segment, word, element}
  const [current, setCurrent] = useState({ segment: 0, word: 0 }); // the one word that Tab reaches
  const area = useRef(null);
  const { segments, state, problem } = translation;
  const isStale = state === "failed" && segments.length > 0;
  useLayoutEffect(() => setOpen(null), [segments.length, state]); // an effect could close what was opened since

  const words = segments.flatMap((segment, at) =>
    (segment.explanation?.target_words ?? []).map((_, word) => ({ segment: at, word })),
  );
  const reached = words.find((one) => same(one, current)) ?? words[0];
  const move = (from, step) => {
    const at = words.findIndex((one) => same(one, from));
    const to = words[Math.min(words.length - 1, Math.max(0, at + step))];
    setCurrent(to);
    elementOf(area.current, to)?.focus();
  };
  const onKey = (event, one) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -words.length, End: words.length };
    if (event.key in steps) move(one, steps[event.key]);
    else if (event.key === "Enter" || event.key === " " || event.key === "ArrowDown") setOpen(one);
    else return;
    event.preventDefault();
  };
  const close = (back = true) => {
    if (open && back) elementOf(area.current, open)?.focus();
    else onPoint(null);
    setOpen(null);
  };
  const leave = () => onPoint(open && { side: "target", ...open }); // what is being chosen for stays lit

  const word = (segment, at, entry, index) => {
    const one = { segment: at, word: index };
    const sure = sureness(segment, index);
    const classes = ["word", lit.segment === at ? lightOf(lit.target, index) : "", sure.value < UNSURE ? "unsure" : ""];
    return html`<span role="button" class=${classes.filter(Boolean).join(" ")} tabindex=${same(one, reached) ? 0 : -1}
      data-segment=${at} data-word=${index} aria-haspopup="listbox" aria-expanded=${same(one, open) ? "true" : "false"}
      title=${`${sure.said}; choose another`}
      onMouseEnter=${() => onPoint({ side: "target", ...one })} onMouseLeave=${leave}
      onFocus=${() => { setCurrent(one); onPoint({ side: "target", ...one }); }} onBlur=${leave}
      onClick=${() => setOpen(same(one, open) ? null : one)} onKeyDown=${(event) => onKey(event, one)}
      >${entry.text}</span>`;
  };
  const wordsOf = (segment, at) => {
    if (!segment.explanation) return html`<span class="plain" onMouseEnter=${() => translation.look(at)}>${ratedOnly(segment)}</span>`;
    const entries = segment.explanation.target_words;
    return pieces(segment.text, entries, (entry, index) => word(segment, at, entry, index));
  };
  // The mark stands beside the text and not in it: whoever selects and copies gets the translation alone.
  const sentence = (segment, at) => {
    const doubt = doubtOf(segment);
    if (!doubt) return wordsOf(segment, at);
    return html`<span class="doubted" role="group" tabindex="-1" data-sentence=${at} data-doubt=${doubt} title=${doubt}
      aria-label=${`Doubtful sentence: ${doubt}`} onFocus=${() => setCurrent({ segment: at, word: 0 })}>${wordsOf(segment, at)}</span>`;
  };

  // As it was; only where nothing stood between two sentences there is a space, so that one sees where they end.
  const gap = (at) => (at ? translation.before[at] || " " : translation.before[at].trimStart());
  return html`<div class="pane target">
    ${tooLong}
    ${problem && html`<${Failure} problem=${problem} retry=${translation.retry} wait=${translation.wait}>
      ${isStale && html`<span id="stale-note">${translation.isOfThisText
        ? "What stands below is not the whole translation."
        : "What stands below is the translation of what was typed before."}</span>`}
    </${Failure}>`}
    <div class=${["reading", state === "working" && "working", isStale && "stale"].filter(Boolean).join(" ")} ref=${area} lang=${language} dir="auto"
      role="group" aria-label="Translation" aria-describedby=${isStale ? "stale-note" : undefined} aria-busy=${state === "working" ? "true" : "false"}>
      ${segments.map((segment, at) => [gap(at), sentence(segment, at)])}${translation.after.trimEnd()}
      ${!segments.length && state !== "failed" && !tooLong && html`<span class="placeholder">${state === "working" ? "Translating …" : "Translation"}</span>`}
      ${open && html`<${Alternatives} key=${`${open.segment}.${open.word}`} area=${area} open=${open} translation=${translation} onClose=${close} />`}
    </div>
    <div class="unseen" aria-live="polite">${state === "done" ? translation.text : ""}</div>
    ${legend}
    <div class="actions">
      ${translation.changed > 0 && html`<button type="button" class="quiet" onClick=${translation.undo}>${translation.changed > 1 ? "Undo choices" : "Undo choice"}</button>`}
      ${children}
    </div>
  </div>`;
}

// A text with some of its words shown in another way.
function pieces(text, entries, show) {
  const found = [];
  let position = 0;
  entries.forEach((entry, index) => {
    found.push(text.slice(position, entry.start), show(entry, index));
    position = entry.end;
  });
  return [...found, text.slice(position)];
}

// Before a sentence is explained: the words that the service itself calls unsure.
const ratedOnly = (segment) =>
  pieces(segment.text, segment.corrected ? [] : segment.words.filter((entry) => entry.confidence < UNSURE), (entry) => html`<span class="unsure">${entry.text}</span>`);

const same = (one, other) => Boolean(one && other && one.segment === other.segment && one.word === other.word);

function elementOf(area, { segment, word }) {
  return area?.querySelector(`[role=button][data-segment="${segment}"][data-word="${word}"]`);
}
