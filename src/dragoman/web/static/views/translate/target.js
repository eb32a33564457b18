// The translation: a field that one may type into, over the same text word by word, which shows what is known of it.

import { html, useRef } from "../../vendor/htm-preact.js";
import { Failure } from "../failure.js";
import { useCaret } from "./caret.js";
import { shownText } from "./editing.js";
import { Margin } from "./margin.js";
import { Menu } from "./menu.js";
import { doubtOf, sureness, UNSURE } from "./trust.js";
import { lightOf } from "./words.js";

export function TargetPane({ translation, lit, language, current, onCurrent, onPoint, onLeave, instead, legend, children }) {
  const { segments, state, problem } = translation;
  const area = useRef(null);
  const field = useRef(null);
  const shown = shownText(translation);
  const isStale = state === "failed" && segments.length > 0;
  const { at, menu, handlers } = useCaret({ translation, shown, area, field, current, onCurrent, onPoint, onLeave });
  const readOnly = state !== "done";
  return html`<div class="pane target">
    ${instead}
    ${problem && html`<${Failure} problem=${problem} retry=${translation.retry} wait=${translation.wait}>
      ${isStale && html`<span id="stale-note">${translation.isOfThisText
        ? "What stands below is not the whole translation."
        : "What stands below is the translation of what was typed before."}</span>`}
    </${Failure}>`}
    <div class=${["writing", "editing", state === "working" && "working", isStale && "stale"].filter(Boolean).join(" ")}>
      <div class="reading" ref=${area} lang=${language} dir="auto" aria-hidden="true">
        ${segments.map((segment, index) => [
          shown.text.slice(index ? shown.places[index - 1].end : 0, shown.places[index].start),
          html`<${Sentence} key=${`${segment.start} ${index}`} ...${{ segment, at: index, lit: lit.segment === index ? lit.target : null, isCurrent: current?.segment === index }} />`,
        ])}${shown.text.slice(shown.places.at(-1)?.end ?? 0)}
      </div>
      <textarea class="over" ref=${field} value=${shown.text} lang=${language} dir="auto" spellcheck=${false} aria-label="Translation"
        placeholder=${instead || state === "failed" ? "" : state === "working" ? "Translating …" : "Translation"} readOnly=${readOnly}
        aria-describedby=${isStale ? "stale-note" : "caret-help"} aria-busy=${state === "working" ? "true" : "false"} aria-autocomplete="list"
        aria-controls=${at ? "caret-menu" : undefined} aria-activedescendant=${at && menu.active >= 0 ? `choice-${menu.active}` : undefined}
        ...${handlers}></textarea>
      <${Margin} area=${area} segments=${segments} current=${current?.segment} onChoose=${(segment) => onCurrent({ segment, goTo: true })} />
      ${at && html`<${Menu} menu=${menu} at=${at} area=${area} label=${at.word === undefined ? "How it goes on" : `In place of “${segments[at.segment].explanation?.target_words[at.word]?.text ?? ""}”`} />`}
    </div>
    <span id="caret-help" hidden>Type to change it. Alt and the down arrow offer other words at the caret.</span>
    <div class="unseen" aria-live="polite">${state === "done" ? translation.text : ""}</div>
    <div class="unseen" aria-live="polite">${at && menu.found ? `${menu.options.length} to choose from, by the down arrow` : ""}</div>
    <div class="told-of">${legend}</div>
    <div class="actions">${children}</div>
  </div>`;
}

function Sentence({ segment, at, lit, isCurrent }) {
  const doubt = doubtOf(segment);
  const classes = ["sentence-of", doubt && "doubted", isCurrent && "current", segment.changed && "changed"].filter(Boolean).join(" ");
  return html`<span class=${classes} data-sentence=${at} data-doubt=${doubt || undefined}>${segment.explanation ? words(segment, at, lit) : ratedOnly(segment)}</span>`;
}

const words = (segment, at, lit) => pieces(segment.text, segment.explanation.target_words, (entry, index) => {
  const sure = sureness(segment, index);
  const classes = ["word", lit ? lightOf(lit, index) : "", sure.value < UNSURE ? "unsure" : ""];
  return html`<span class=${classes.filter(Boolean).join(" ")} data-segment=${at} data-word=${index} data-said=${`${entry.text}: ${sure.said}`}>${entry.text}</span>`;
});

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
  pieces(segment.text, segment.corrected || segment.changed ? [] : segment.words.filter((entry) => entry.confidence < UNSURE), (entry) => html`<span class="unsure">${entry.text}</span>`);
