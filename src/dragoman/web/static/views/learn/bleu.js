// What BLEU measures: the service counts with sacreBLEU, the page shows what was counted.

import { html, useEffect, useState } from "../../vendor/htm-preact.js";
import { exampleOf } from "../examples.js";
import { Lesson, Segments } from "./lesson.js";
import { bleu } from "./model.js";

const PAUSE = 250; // milliseconds without a key
const SIZES = [1, 2, 3, 4];

export function Bleu({ frame, seen }) {
  const { text, source, target } = seen.question;
  const given = text === exampleOf(source) ? exampleOf(target) : "";
  const [typed, setTyped] = useState({}); // what the reader wrote, of this sentence
  const own = typed.of === seen ? typed : { of: seen };
  const hypothesis = own.hypothesis ?? seen.translation;
  const reference = own.reference ?? given;
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const [size, setSize] = useState(2);
  useEffect(() => {
    if (!reference.trim()) { setFound(null); return undefined; }
    const control = new AbortController();
    const timer = setTimeout(() => bleu(hypothesis, reference, control.signal).then(
      (value) => { setFound(value); setProblem(""); },
      (error) => { if (!control.signal.aborted) setProblem(error.message); },
    ), found ? PAUSE : 0);
    return () => { clearTimeout(timer); control.abort(); };
  }, [hypothesis, reference]);
  const write = (name) => (event) => setTyped({ ...own, [name]: event.target.value });
  return html`<${Lesson} frame=${frame} equation="bleu" wide
    text=${html`<p>Is a translation good? BLEU asks how much of it a person’s translation, the <em>reference</em>, has as well: which share of its words, of its pairs of neighbouring words, of
      its triples and its fours. The four shares are multiplied and the fourth root taken. To say little, and that surely, would pay; so a translation shorter than the reference is marked
      down by the <em>brevity penalty</em>. No word counts more often than the reference has it.</p>
      <p>It knows no meaning: a synonym is as wrong as nonsense, and “not” is a word like any other. Over a thousand sentences that evens out, which is what BLEU is
      for; on one sentence it is a game. The paper’s 28.4 and 41.8 are such figures of a whole test set, and only figures counted in the same way can be compared: the signature says how.</p>`}>
    <label class="field">A reference: how would you put it? <input type="text" dir="auto" lang=${target} maxlength="300" value=${reference} onInput=${write("reference")} placeholder="Type a translation of your own" /></label>
    <label class="field">The translation that is scored <input type="text" dir="auto" lang=${target} maxlength="300" value=${hypothesis} onInput=${write("hypothesis")} /></label>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${!reference.trim() && html`<p class="measures">Type a reference to have a score.</p>`}
    ${found && html`<p class="score">BLEU <b data-shown="bleu">${found.score.toFixed(2)}</b></p>
      <div class="controls"><${Segments} label="Runs of words" name="bleu-size" value=${size} options=${SIZES.map((one) => [one, one === 1 ? "1 word" : `${one} words`])} onChoose=${setSize} /></div>
      <${Matches} found=${found} size=${size} />
      <table class="bleu-counts"><thead><tr><th scope="col">runs of</th><th scope="col" class="number">found</th><th scope="col" class="number">of</th><th scope="col" class="number">share</th></tr></thead>
        <tbody>${SIZES.map((one) => html`<tr key=${one} class=${one === size ? "marked" : ""}><th scope="row">${one}</th><td class="number" data-found=${found.counts[one - 1]}>${found.counts[one - 1]}</td><td class="number">${found.totals[one - 1]}</td>
          <td class="number" data-precision=${found.precisions[one - 1]}>${found.totals[one - 1] ? `${found.precisions[one - 1].toFixed(1)} %${found.counts[one - 1] ? "" : " (smoothed)"}` : "none so long"}</td></tr>`)}</tbody></table>
      <p class="measures">brevity penalty <b data-shown="brevity">${found.brevity_penalty.toFixed(3)}</b>: ${found.hypothesis_tokens.length} against the reference’s ${found.reference_tokens.length}, punctuation counted</p>
      <p class="small">Counted by sacreBLEU: <span class="signature">${found.signature}</span> Where no run is found, a small share stands for 0, or the whole product would be 0.</p>`}
  </${Lesson}>`;
}

// The translation's tokens; those that are part of a run that the reference has, none more often than it does.
function Matches({ found, size }) {
  const left = new Map();
  const runs = (tokens) => tokens.slice(0, Math.max(0, tokens.length - size + 1)).map((_, at) => tokens.slice(at, at + size).join(" "));
  for (const run of runs(found.reference_tokens)) left.set(run, (left.get(run) ?? 0) + 1);
  const covered = new Set();
  let count = 0;
  runs(found.hypothesis_tokens).forEach((run, at) => {
    if (!left.get(run)) return;
    left.set(run, left.get(run) - 1);
    count += 1;
    for (let one = at; one < at + size; one += 1) covered.add(one);
  });
  return html`<p class="matches" role="img" aria-label=${`${count} runs of ${size} are in the reference`} data-matched=${count}>
    ${found.hypothesis_tokens.map((token, at) => html`<span key=${at} class=${covered.has(at) ? "match" : ""}>${token}</span>`)}</p>`;
}
