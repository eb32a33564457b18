// The translation: a field that one may type into, over the same text word by word, which shows what is known of it.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { Failure } from "../failure.js";
import { editsOf, sentenceAt, shownText, wordBefore } from "./editing.js";
import { Margin } from "./margin.js";
import { Menu, useMenu } from "./menu.js";
import { doubtOf, sureness, UNSURE } from "./trust.js";
import { lightOf } from "./words.js";

const PAUSE = 350; // milliseconds without a key before the model is asked how it goes on

export function TargetPane({ translation, lit, language, current, onCurrent, onPoint, onLeave, instead, legend, children }) {
  const { segments, state, problem } = translation;
  const [at, setAt] = useState(null); // what the menu is for
  const area = useRef(null);
  const field = useRef(null);
  const caret = useRef(null); // where it goes when what is shown has changed
  const timer = useRef(0);
  const shown = shownText(translation);
  const isStale = state === "failed" && segments.length > 0;
  const close = () => { clearTimeout(timer.current); setAt(null); };
  useLayoutEffect(close, [segments.length, state]); // an effect could close what was opened since
  useEffect(() => () => clearTimeout(timer.current), []);
  useLayoutEffect(() => {
    if (caret.current === null) return;
    const { segment, position } = caret.current;
    const spot = (shown.places[segment]?.start ?? 0) + position;
    field.current.setSelectionRange(spot, spot);
    caret.current = null;
  }, [shown.text]);
  useEffect(() => { // the summary leads to a sentence
    if (!current?.goTo || !shown.places[current.segment]) return;
    const { start, end } = shown.places[current.segment];
    field.current.focus({ preventScroll: true });
    field.current.setSelectionRange(start, end);
    area.current.querySelector(`[data-sentence="${current.segment}"]`)?.scrollIntoView({ block: "center" });
  }, [current]);

  const menu = useMenu(translation, at, (taken) => {
    caret.current = taken;
    close();
    if (taken) field.current.focus();
  });

  const leaveFor = (segment) => {
    if (current && current.segment !== segment) onLeave(current.segment);
    if (current?.segment !== segment) onCurrent(segment < 0 ? null : { segment });
  };
  const wordAt = (segment, position) => (segments[segment]?.explanation?.target_words ?? []).findIndex(({ start, end }) => start <= position && position <= end);
  // Where the caret is: its sentence becomes the current one, the word there is lit.
  const follow = () => {
    const { selectionStart: start, selectionEnd: end } = field.current;
    const segment = sentenceAt(shown.places, start);
    leaveFor(segment);
    const word = segment < 0 ? -1 : wordAt(segment, start - shown.places[segment].start);
    onPoint(word < 0 ? null : { side: "target", segment, word });
    return start === end && word >= 0 ? { segment, word } : null;
  };
  const open = () => {
    const found = follow();
    setAt(found && segments[found.segment].tokens && state === "done" ? found : null);
  };
  const typed = (event) => {
    const { value, selectionStart: position } = event.target;
    const edits = editsOf(shown, value, position);
    close();
    caret.current = null;
    if (!edits.length) { // what stands between sentences is the source's
      event.target.value = shown.text;
      event.target.setSelectionRange(Math.min(position, shown.text.length), Math.min(position, shown.text.length));
      return;
    }
    edits.forEach((edit) => translation.type(edit.at, edit.text));
    const { at: segment, text } = edits[0];
    leaveFor(segment);
    const inside = position - shown.places[segment].start;
    if (edits.length > 1) caret.current = { segment, position: inside };
    else timer.current = setTimeout(() => setAt({ segment, position: inside, ...wordBefore(text, inside) }), PAUSE);
  };
  const onKey = (event) => {
    if (at && menu.onKey(event)) return;
    if ((event.altKey && event.key === "ArrowDown") || (event.ctrlKey && event.key === " ")) {
      event.preventDefault();
      open();
    }
  };
  const moved = (event) => { // keys that move the caret
    if (!/^(Arrow|Home|End|Page)/.test(event.key) || event.altKey || (at && /^Arrow(Up|Down)$/.test(event.key))) return;
    close();
    follow();
  };
  const pointed = (event) => {
    const found = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.classList?.contains("word"));
    onPoint(found ? { side: "target", segment: Number(found.dataset.segment), word: Number(found.dataset.word) } : null);
    const sentence = found ?? document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.dataset?.sentence);
    if (sentence?.dataset.sentence && !segments[sentence.dataset.sentence]?.explanation) translation.look(Number(sentence.dataset.sentence));
    field.current.title = found?.dataset.said ?? "";
  };

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
        onInput=${typed} onClick=${open} onKeyDown=${onKey} onKeyUp=${moved} onMouseMove=${pointed} onMouseLeave=${() => onPoint(null)}
        onBlur=${() => { close(); onPoint(null); if (current) onLeave(current.segment); }}></textarea>
      <${Margin} area=${area} segments=${segments} current=${current?.segment} onChoose=${(segment) => onCurrent({ segment, goTo: true })} />
      ${at && html`<${Menu} menu=${menu} at=${at} area=${area} label=${at.word === undefined ? "How it goes on" : `In place of “${segments[at.segment].explanation?.target_words[at.word]?.text ?? ""}”`} />`}
    </div>
    <span id="caret-help" hidden>Type to change it. Alt and the down arrow offer other words at the caret.</span>
    <div class="unseen" aria-live="polite">${at && menu.found ? `${menu.options.length} to choose from, by the down arrow` : state === "done" && !at ? translation.text : ""}</div>
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
