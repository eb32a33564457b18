// Words as vectors: the pieces whose embeddings are nearest to a word's.

import { html, useState } from "../../vendor/htm-preact.js";
import { shownToken } from "../inside/state.js";
import { Found } from "./found.js";
import { Bars, Lesson, TokenRow } from "./lesson.js";
import { neighbours, useFetched } from "./model.js";

export function Embeddings({ frame, seen, units, by }) {
  const [asked, setAsked] = useState(null); // null: the longest, which is likely to mean something
  // A piece is looked up as it is spelt; symbols and marks of case have no neighbours that mean anything.
  const words = by === "words" ? seen.source_words : units.source.map(({ text }) => ({ text: text.replace("·", "") })).filter(({ text }) => /[\p{L}\p{N}]/u.test(text) && !/^[⟨<]/.test(text));
  const longest = words.findIndex(({ text }) => text.length === Math.max(...words.map((word) => word.text.length)));
  const at = Math.min(asked ?? longest, words.length - 1);
  const chosen = words[at];
  const { source, target } = seen.question;
  const { value, problem } = useFetched(
    () => chosen && neighbours({ text: chosen.text, source, target, count: 8 }), [chosen?.text, source, target],
  );
  return html`<${Lesson} frame=${frame} equation="embedding"
    text=${html`<p>A computer cannot multiply words, so each word, or piece of one, is given a list of ${seen.d_model} numbers: its <em>embedding</em>. Nobody chose these numbers. Training moved them until they helped to translate.</p>
      <p>Your sentence became ${seen.source.length} tokens; the last one says that it ends. Choose a word: its nearest neighbours are those whose
      vectors point most nearly the same way. The number is the cosine of the angle between them, 1 being the same direction. Often they mean
      something alike, or do the same work in a sentence; a small model trained for minutes has a rough idea only.</p>`}>
    <${TokenRow} label="Word" units=${words} chosen=${at} onChoose=${setAsked} />
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${!chosen && html`<p class="measures">No piece of this sentence is a part of a word.</p>`}
    ${chosen && value && html`<p class="measures">nearest to <b>${chosen.text}</b></p>
      <${Bars} label=${`Neighbours of ${chosen.text}`} rows=${value.map(({ token, similarity }) => ({ name: shownToken(token), value: similarity }))} />`}
    <${Found} of="embeddings" />
  </${Lesson}>`;
}
