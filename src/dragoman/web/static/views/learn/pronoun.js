// The pronoun: what “it” looks at in every head of the loaded model, in two sentences that differ in their last word.

import { html, useEffect, useState } from "../../vendor/htm-preact.js";
import { insideAddress, Lesson } from "./lesson.js";
import { lookInto, onceEach } from "./model.js";
import { unitAt, unitsOf, weightsOf } from "./units.js";

const SENTENCES = ["The animal didn't cross the street because it was too tired.", "The animal didn't cross the street because it was too wide."];
const PRONOUN = "it";
const NOUNS = ["animal", "street"];
const LISTED = 8;

export function Pronoun({ frame, seen }) {
  const { source, target } = seen.question;
  const english = source === "en";
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setFound(null);
    if (!english) return undefined;
    const control = new AbortController();
    Promise.all(SENTENCES.map((text) => looked({ text, source, target }, control.signal))).then(
      setFound, (error) => { if (!control.signal.aborted) setProblem(error.message); },
    );
    return () => control.abort();
  }, [seen.log_probability, source, target]);
  return html`<${Lesson} frame=${frame} wide
    link=${english && insideAddress({ source, target, text: SENTENCES[0] }, { kind: "encoder", layer: found?.[0].heads[0]?.layer ?? 0 })}
    text=${html`<p>“The animal didn’t cross the street because it was too tired.” Who was tired? Change one word, <em>tired</em> to <em>wide</em>, and “it” means the street. The
      sentence became famous with a picture: one head, in which “it” looks at “animal”, as if attention had understood.</p>
      <p>Such pictures were found by looking through many heads of a large model for one that shows it. Here is what all heads of <em>this</em> model do, in both
      sentences. If a head resolved the pronoun, its weight would lie on “animal” in the first and move to “street” in the second.</p>`}>
    ${!english && html`<p class="measures">The example is English, and this model reads another language.</p>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${english && !found && !problem && html`<p class="measures">…</p>`}
    ${found && html`<${Heads} found=${found} />`}
  </${Lesson}>`;
}

// One sentence: its translation, and what the pronoun gives to each noun in each head of the encoder.
async function looked(question, signal) {
  const seen = await lookInto(question, signal);
  const more = onceEach(seen);
  const { source: units } = unitsOf(seen, "words");
  const named = (word) => unitAt(units, seen.source_words.find(({ text }) => text.toLowerCase() === word)?.first_token ?? 0);
  const [asking, ...nouns] = [PRONOUN, ...NOUNS].map(named);
  const layers = await Promise.all(Array.from({ length: seen.encoder_layers }, (_, layer) => more.attention("encoder", layer)));
  const heads = layers.flatMap((value, layer) => Array.from({ length: seen.num_heads }, (_, head) => {
    const weights = weightsOf((row) => value.row(head, row), units[asking], units);
    return { layer, head, nouns: nouns.map((at) => weights[at]) };
  }));
  return { text: question.text, translation: seen.translation, heads, even: units[nouns[0]].tokens.length / seen.source.length };
}

function Heads({ found }) {
  const [tired, wide] = found;
  const rows = tired.heads.map((one, at) => ({ ...one, other: wide.heads[at].nouns }));
  rows.sort((one, two) => Math.max(...two.nouns, ...two.other) - Math.max(...one.nouns, ...one.other));
  const animal = rows.filter(({ nouns }) => nouns[0] > nouns[1]);
  const turns = animal.filter(({ other }) => other[1] > other[0]);
  const most = Math.max(...tired.heads.map(({ nouns }) => nouns[0]));
  const cell = (value, key) => html`<td class="number weight-cell" style=${{ "--weight": value.toFixed(4) }} data-weight=${value.toFixed(5)} key=${key}>${value.toFixed(3)}</td>`;
  const line = ({ layer, head, nouns, other }) => html`<tr key=${`${layer}.${head}`} data-head=${`${layer}.${head}`}><th scope="row">layer ${layer}, head ${head}</th>
    ${nouns.map((value, at) => cell(value, at))}${other.map((value, at) => cell(value, at + 2))}</tr>`;
  const table = (some, name) => html`<div class="scroll plain-scroll" role="region" tabindex="0" aria-label=${name}><table class="pronoun">
    <thead><tr><td></td><th colspan="2" scope="colgroup">… too <b>tired</b></th><th colspan="2" scope="colgroup">… too <b>wide</b></th></tr>
      <tr><td></td>${[...NOUNS, ...NOUNS].map((noun, at) => html`<th scope="col" class="number" key=${at}>${noun}</th>`)}</tr></thead>
    <tbody>${some.map(line)}</tbody></table></div>`;
  return html`
    <dl class="two">${found.map(({ text, translation }) => html`<dt>${text}</dt><dd>${translation || "(nothing)"}</dd>`)}</dl>
    <h3>What “it” gives to each noun</h3>
    ${table(rows.slice(0, LISTED), "The heads that give most to either noun")}
    ${rows.length > LISTED && html`<details><summary>The other ${rows.length - LISTED} heads</summary>${table(rows.slice(LISTED), "The other heads")}</details>`}
    <p class="measures">In <b data-shown="animal heads">${animal.length}</b> of ${rows.length} heads “it” looks more at “animal” than at “street” in the first sentence; in <b data-shown="turning heads">${turns.length}</b> it
      does so and turns to “street” in the second. The most that “animal” gets from any head is <b data-shown="most on animal">${most.toFixed(3)}</b>; a head that looks at everything
      alike gives ${tired.even.toFixed(3)}.</p>
    <p class="measures">${turns.length
      ? "Heads that turn are at best a trace of it: the weight says what is read, not what is made of it, and the translations above show whether it was understood."
      : "So no head here tells the two sentences apart in this way. Whatever the model knows of the pronoun, these weights do not show it; the translations above show how much that is."}</p>`;
}
