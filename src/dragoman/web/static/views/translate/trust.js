// How sure the translation is, in words that say what the figures mean; and corrections, where the service keeps them.

import { html, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { wayOf } from "./languages.js";
import { percent } from "./words.js";

export const UNSURE = 0.5;

const FIGURES = 8; // sentences whose figures are listed one by one

const DEFECTS = { loop: "repeated itself", copy: "copied the source", runaway: "did not come to an end", empty: "was empty", lost: "lost what must stay" };
const defectInWords = (defect) => DEFECTS[defect] ?? defect;

const isRated = (segment) => segment.confidence !== null && !segment.changed && !segment.corrected;

// Why a sentence is not to be relied on, in few words; empty: there is no sign of it.
export function doubtOf(segment) {
  if (segment.changed || segment.corrected) return "";
  const figure = isRated(segment) && segment.confidence < UNSURE ? [`${percent(segment.confidence)}\u00a0sure`] : [];
  const left = segment.how === "source" ? ["not translated"] : [];
  return [...left, ...figure, ...segment.faults.map(defectInWords)].join("; ");
}


// How probably a word is right, where the service says; else how probable the model found its beginning.
export function sureness(segment, index) {
  const entry = segment.explanation.target_words[index];
  const rated = segment.changed ? null : segment.words?.find((word) => word.start === entry.start && word.text === entry.text);
  if (rated) return { value: rated.confidence, said: `${percent(rated.confidence)} likely to be right` };
  const probability = segment.explanation.positions[entry.first_token].probability;
  return { value: probability, said: percent(probability) };
}

export function Legend({ about, translation }) {
  const { segments, languages, state } = translation;
  const served = wayOf(about, languages);
  if (!segments.length || state === "working") return null;
  if (state === "failed") return null; // it is of what was there before
  const rated = segments.filter(isRated);
  const explained = segments.some((segment) => segment.explanation);
  const repaired = segments.filter((segment) => segment.repaired.length && !segment.changed);
  const corrected = segments.filter((segment) => segment.corrected);
  return html`<div class="legend" role="note" aria-label="How sure">
    ${served?.pivot && html`<${Through} way=${served} segments=${segments} />`}
    <${Doubts} segments=${segments} isRated=${rated.length > 0} />
    ${rated.length > 0 && html`<p>
      How sure: ${figuresOf(rated)}${" "}
      <details><summary>what that means</summary>
        ${served?.pivot && "The figure is the product of two, one for each step. "}Of sentences that got this figure when the model was measured on text it had not seen, about that share were good
        (chrF of ${served?.good ?? 50} or more against a person’s translation). An${" "}
        <span class="unsure">underlined</span> word was right less than half of the time. It is a frequency, no proof.
      </details>
    </p>`}
    ${!rated.length && explained && !corrected.length && html`<p><span class="unsure">Underlined</span>: the model gave the word less than
      50${"\u00a0"}%. How often such words are right was not measured; “dragoman calibrate” measures it.</p>`}
    ${repaired.length > 0 && html`<p>${told(repaired, "repaired")} and ${repaired.length === 1 ? "was" : "were"} translated again.</p>`}
    ${corrected.length > 0 && html`<p>${corrected.length === 1 ? "A sentence is" : `${corrected.length} sentences are`} as corrected before.</p>`}
  </div>`;
}

// What was translated through another language says so, and shows what it was there.
function Through({ way, segments }) {
  const between = segments.filter((segment) => segment.pivot_text).map((segment) => segment.pivot_text);
  return html`<p class="through">Translated via ${way.pivot_name}, as no run here translates from ${way.source_name} into ${way.target_name}.${" "}
    ${between.length > 0 && html`<details><summary>the text in ${way.pivot_name}</summary>${" "}<span lang=${way.pivot} dir="auto">${between.join(" ")}</span></details>`}</p>`;
}

// How many sentences are doubtful, and a way from one to the next.
function Doubts({ segments, isRated }) {
  const [last, setLast] = useState(-1);
  const doubted = segments.flatMap((segment, at) => (doubtOf(segment) ? [at] : []));
  const count = doubted.length;
  const next = () => {
    const at = doubted.find((one) => one > last) ?? doubted[0];
    const element = document.querySelector(`[data-sentence="${at}"]`);
    element.scrollIntoView({ block: "center" });
    element.focus({ preventScroll: true, focusVisible: true });
    setLast(at);
  };
  const said = isRated ? (count === 1 ? "is doubtful" : "are doubtful") : count === 1 ? "has a defect" : "have defects";
  return html`<div role="status">${count > 0 && html`<p class="doubts">
    <span class="doubtful">${count} of ${segments.length} ${segments.length === 1 ? "sentence" : "sentences"} ${said}: do not rely on ${count === 1 ? "it" : "them"}.</span>${" "}
    <button type="button" class="quiet" onClick=${next}>${count === 1 ? "Show it" : "Show the next"}</button></p>`}</div>`;
}

function figuresOf(rated) {
  const figure = (segment) => html`<strong class=${segment.confidence < UNSURE ? "doubtful" : ""} title=${segment.source}>${percent(segment.confidence)}</strong>`;
  if (rated.length <= FIGURES) return rated.map((segment, at) => html`${at ? ", " : ""}${figure(segment)}`);
  const sorted = [...rated].sort((one, other) => one.confidence - other.confidence);
  return html`${figure(sorted[0])} to ${figure(sorted.at(-1))}, half of the sentences ${figure(sorted[Math.floor(sorted.length / 2)])} or more`;
}

const told = (segments, kind) =>
  `${segments.length === 1 ? "A sentence" : `${segments.length} sentences`} ${[...new Set(segments.flatMap((segment) => segment[kind].map(defectInWords)))].join(" and ")}`;

export function Corrections({ about, translation }) {
  const [open, setOpen] = useState(false);
  if (!about.corrections || !translation.segments.length) return null;
  const suggested = translation.segments.filter((segment) => segment.suggestion).length;
  return html`<section class="sheet corrections" aria-label="Corrections">
    <button type="button" class="quiet" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>
      Correct this translation${suggested ? ` (${suggested} similar ${suggested === 1 ? "sentence was" : "sentences were"} corrected before)` : ""}
    </button>
    ${open && translation.segments.map((segment, at) => html`<${Sentence} key=${`${segment.start}:${segment.source}`} segment=${segment} at=${at} translation=${translation} />`)}
  </section>`;
}

function Sentence({ segment, at, translation }) {
  const [text, setText] = useState(segment.text);
  const [said, setSaid] = useState("");
  const send = async (words, done) => {
    const { source, target } = translation.languages;
    const machine = segment.corrected ? "" : segment.candidates[0].text;
    try {
      await api.correct({ text: segment.source, source, target, translation: words, machine });
      setSaid(done);
      if (words) translation.correct(at, words);
      else translation.retry();
    } catch (error) {
      setSaid(error.message);
    }
  };
  const save = (event) => {
    event.preventDefault();
    send(text.trim(), "Kept: from now on this sentence is translated so.");
  };
  const id = `correction-${at}`;
  return html`<form class="correction" onSubmit=${save}>
    <label for=${id}>${segment.source}</label>
    <textarea id=${id} lang=${translation.languages.target} dir="auto" rows="2" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
    ${segment.suggestion && html`<p class="suggestion">Similar (${percent(segment.suggestion.score)}): “${segment.suggestion.source}” was corrected to
      “${segment.suggestion.target}” <button type="button" class="quiet" onClick=${() => setText(segment.suggestion.target)}>Use it</button></p>`}
    <p>
      <button type="submit" disabled=${!text.trim() || text.trim() === segment.text}>Keep correction</button>
      ${segment.corrected && html`<button type="button" class="quiet" onClick=${() => send("", "Forgotten.")}>Forget it</button>`}
      <span role="status">${said}</span>
    </p>
  </form>`;
}
