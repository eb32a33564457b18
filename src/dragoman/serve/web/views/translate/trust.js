// How sure the translation is, in words that say what the figures mean; and corrections, where the service keeps them.

import { html, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { percent } from "./words.js";

export const UNSURE = 0.5;

const FAULTS = { loop: "repeated itself", copy: "copied the source", runaway: "did not come to an end", empty: "was empty" };

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
  const served = about.pairs.find((pair) => pair.source === languages.source && pair.target === languages.target);
  if (!segments.length || state === "working") return null;
  const rated = segments.filter((segment) => segment.confidence !== null && !segment.changed && !segment.corrected);
  const explained = segments.some((segment) => segment.explanation);
  const repaired = segments.filter((segment) => segment.repaired.length && !segment.changed);
  const faulty = segments.filter((segment) => segment.faults.length && !segment.changed);
  const corrected = segments.filter((segment) => segment.corrected);
  return html`<div class="legend" role="note" aria-label="How sure">
    ${rated.length > 0 && html`<p>
      How sure: ${rated.map((segment, at) => html`${at ? ", " : ""}<strong class=${segment.confidence < UNSURE ? "doubtful" : ""}
        title=${segment.source}>${percent(segment.confidence)}</strong>`)}${" "}
      <details><summary>what that means</summary>
        Of sentences that got this figure when the model was measured on text it had not seen, about that share were good
        (chrF of ${served?.good ?? 50} or more against a person’s translation). An${" "}
        <span class="unsure">underlined</span> word was right less than half of the time. It is a frequency, no proof.
      </details>
    </p>`}
    ${!rated.length && explained && !corrected.length && html`<p><span class="unsure">Underlined</span>: the model gave the word less than
      50${"\u00a0"}%. How often such words are right was not measured; “dragoman calibrate” measures it.</p>`}
    ${repaired.length > 0 && html`<p>${told(repaired, "repaired")} and was translated again.</p>`}
    ${faulty.length > 0 && html`<p class="doubtful">${told(faulty, "faults")}: do not rely on it.</p>`}
    ${corrected.length > 0 && html`<p>${corrected.length === 1 ? "A sentence is" : `${corrected.length} sentences are`} as corrected before.</p>`}
  </div>`;
}

const told = (segments, kind) =>
  `${segments.length === 1 ? "A sentence" : `${segments.length} sentences`} ${[...new Set(segments.flatMap((segment) => segment[kind].map((fault) => FAULTS[fault])))].join(" and ")}`;

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
