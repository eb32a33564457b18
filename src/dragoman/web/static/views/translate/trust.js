// How sure the translation is, in words that say what the figures mean.

import { html } from "../../vendor/htm-preact.js";
import { wayOf } from "./languages.js";
import { percent } from "./words.js";

export const UNSURE = 0.5;

const DEFECTS = { loop: "repeated itself", copy: "copied the source", runaway: "did not come to an end", short: "is much shorter than usual", empty: "was empty", lost: "lost what must stay" };
export const defectInWords = (defect) => DEFECTS[defect] ?? defect.replaceAll("_", " ").replaceAll("-", " ");

const isRated = (segment) => segment.confidence !== null && !segment.changed && !segment.corrected;

// Why a sentence is not to be relied on, in few words; empty: there is no sign of it.
export function doubtOf(segment) {
  if (segment.changed || segment.corrected) return "";
  const figure = isRated(segment) && segment.confidence < UNSURE ? [`${percent(segment.confidence)}\u00a0sure`] : [];
  const left = segment.how === "source" ? ["not translated"] : [];
  const lost = lostIn(segment).map(({ text }) => `“${text}”`);
  return [...left, ...figure, ...segment.faults.map(defectInWords), ...(lost.length ? [`not carried over: ${lost.join(", ")}`] : []), ...remarksOn(segment)].join("; ");
}

// What else the service notes about a translation that was simply found: what it added, or anything by its own words.
function remarksOn({ how, notes, source, text, faults }) {
  if (how !== "plain") return []; // then they are about attempts that were not taken
  const added = notes.filter((note) => note.startsWith("added: ")).map((note) => note.slice("added: ".length));
  const isThere = added.filter((one) => text.includes(one) && !source.includes(one));
  return [...(isThere.length ? [`not in the source: ${isThere.map((one) => `“${one}”`).join(", ")}`] : []), ...notes.filter((note) => !/^(lost|added): /.test(note) && !faults.includes(note))];
}

// The same of any sentence, whether there is a doubt or not.
export function saidOf(segment, at, count) {
  const name = count > 1 ? `Sentence ${at + 1} of ${count}` : "This sentence";
  if (segment.changed) return `${name}: changed by you`;
  if (segment.corrected) return `${name}: as corrected before`;
  const sure = isRated(segment) && segment.confidence >= UNSURE ? `${percent(segment.confidence)}\u00a0sure` : "";
  return `${name}: ${[doubtOf(segment), sure].filter(Boolean).join("; ") || "nothing is known against it"}`;
}

// How probably a word is right, where the service says; else how probable the model found its beginning.
export function sureness(segment, index) {
  const entry = segment.explanation.target_words[index];
  const rated = segment.changed ? null : segment.words?.find((word) => word.start === entry.start && word.text === entry.text);
  if (rated) return { value: rated.confidence, said: `${percent(rated.confidence)} likely to be right` };
  const probability = segment.explanation.positions[entry.first_token].probability;
  return { value: probability, said: percent(probability) };
}

// What of a sentence was not carried over, as stretches of it. A note may be about an attempt that was not taken: what
// the translation has is not lost.
export function lostIn(segment) {
  if (segment.corrected) return [];
  const named = segment.notes.filter((note) => note.startsWith("lost: ")).map((note) => note.slice("lost: ".length));
  let from = 0;
  return named.filter((text) => text && !segment.text.includes(text)).flatMap((text) => {
    const later = segment.source.indexOf(text, from); // the same may stand there twice
    const start = later < 0 ? segment.source.indexOf(text) : later;
    if (start < 0) return [];
    from = start + text.length;
    return [{ start, end: from, text }];
  });
}

export const doubtfulOf = (segments) => segments.flatMap((segment, at) => (doubtOf(segment) ? [at] : []));

// One line for all sentences, and what it means where one asks.
export function Legend({ about, translation, current, onCurrent }) {
  const { segments, languages, state } = translation;
  const served = wayOf(about, languages);
  if (!segments.length || state !== "done") return null; // what is there may be of what was typed before
  const rated = segments.some(isRated);
  const explained = segments.some((segment) => segment.explanation);
  const repaired = segments.filter((segment) => segment.repaired.length && !segment.changed);
  const corrected = segments.filter((segment) => segment.corrected && !segment.changed);
  const lost = segments.flatMap(lostIn);
  return html`<div class="legend" role="note" aria-label="How sure">
    ${served?.pivot && html`<${Through} way=${served} segments=${segments} />`}
    <${Doubts} ...${{ segments, rated, current, onCurrent }} />
    ${lost.length > 0 && html`<p><s class="lost">Struck through</s> in the source: not carried over: ${lost.map(({ text }) => `“${text}”`).join(", ")}.</p>`}
    ${(rated || (explained && !corrected.length)) && html`<details><summary>What the marks mean</summary>
      ${rated
        ? html`<p>${served?.pivot && "The figure is the product of two, one for each step. "}The bar beside each sentence is tinted by how probably it is good:
          of sentences with that figure, when the model was measured on text it had not seen, about that share were good
          (chrF of ${served?.good ?? 50} or more against a person’s translation). An <span class="unsure">underlined</span> word was right less than half
          of the time. These are frequencies, no proof.</p>`
        : html`<p><span class="unsure">Underlined</span>: the model gave the word less than 50${"\u00a0"}%. How often such words are right was not measured
          for this model.</p>`}
    </details>`}
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
function Doubts({ segments, rated, current, onCurrent }) {
  const doubtful = doubtfulOf(segments);
  const count = doubtful.length;
  const next = () => onCurrent({ segment: doubtful.find((at) => at > (current?.segment ?? -1)) ?? doubtful[0], goTo: true });
  const kind = rated ? (count === 1 ? "is doubtful" : "are doubtful") : count === 1 ? "has a defect" : "have defects";
  return html`<div role="status">${count > 0
    ? html`<p class="doubts"><span class="doubtful">${count} of ${segments.length} ${segments.length === 1 ? "sentence" : "sentences"} ${kind}</span>
      <button type="button" class="quiet" onClick=${next}>${count === 1 ? "Show it" : "Next"}</button></p>`
    : rated && html`<p class="doubts">No sentence is doubtful.</p>`}</div>`;
}

const told = (segments, kind) =>
  `${segments.length === 1 ? "A sentence" : `${segments.length} sentences`} ${[...new Set(segments.flatMap((segment) => segment[kind].map(defectInWords)))].join(" and ")}`;
