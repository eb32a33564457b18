// The translation, word by word: pointing at one lights what it came from, choosing one opens its alternatives.

import { html, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { Failure } from "../failure.js";
import { Alternatives } from "./alternatives.js";
import { UNSURE, sureness } from "./trust.js";
import { lightOf } from "./words.js";

export function TargetPane({ translation, lit, language, onPoint, legend, children }) {
  const [open, setOpen] = useState(null); // {segment, word, element}
  const [current, setCurrent] = useState({ segment: 0, word: 0 }); // the one word that Tab reaches
  const area = useRef(null);
  const { segments, state, problem } = translation;
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
  const sentence = (segment, at) => {
    if (!segment.explanation) return html`<span class="plain" onMouseEnter=${() => translation.look(at)}>${segment.text}</span>`;
    const pieces = [];
    let position = 0;
    segment.explanation.target_words.forEach((entry, index) => {
      pieces.push(segment.text.slice(position, entry.start), word(segment, at, entry, index));
      position = entry.end;
    });
    return [...pieces, segment.text.slice(position)];
  };

  // As it was; only where nothing stood between two sentences there is a space, so that one sees where they end.
  const gap = (at) => (at ? translation.before[at] || " " : translation.before[at].trimStart());
  return html`<div class="pane target">
    <div class=${state === "working" ? "reading working" : "reading"} ref=${area} lang=${language} dir="auto"
      role="group" aria-label="Translation" aria-busy=${state === "working" ? "true" : "false"}>
      ${segments.map((segment, at) => [gap(at), sentence(segment, at)])}${translation.after.trimEnd()}
      ${!segments.length && state !== "failed" && html`<span class="placeholder">${state === "working" ? "Translating …" : "Translation"}</span>`}
      ${open && html`<${Alternatives} key=${`${open.segment}.${open.word}`} area=${area} open=${open} translation=${translation} onClose=${close} />`}
    </div>
    <div class="unseen" aria-live="polite">${state === "done" ? translation.text : ""}</div>
    ${problem && html`<${Failure} problem=${problem} retry=${translation.retry} />`}
    ${legend}
    <div class="actions">
      ${translation.changed && html`<button type="button" class="quiet" onClick=${translation.undo}>Undo choice</button>`}
      ${children}
    </div>
  </div>`;
}

const same = (one, other) => Boolean(one && other && one.segment === other.segment && one.word === other.word);

function elementOf(area, { segment, word }) {
  return area?.querySelector(`[role=button][data-segment="${segment}"][data-word="${word}"]`);
}
