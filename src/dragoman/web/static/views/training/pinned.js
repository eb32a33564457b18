// Five sentences that stay: what each checkpoint makes of them, filled in as the training goes on, and how probable each
// finds the reference. The reference is the same text at every checkpoint; what a model writes itself is not.

import { html, useEffect, useMemo, useState } from "../../vendor/htm-preact.js";
import { Chart } from "../../chart.js";
import { pinned, sentencesOf } from "../../runs.js";
import { two, whole } from "../numbers.js";

const COUNT = 5;
const AGAIN = 3000; // milliseconds until a service that is busy is asked again
const SHOWN = 4; // checkpoints of a sentence, before one asks for all

const known = new Map(); // run, step and sentence: the answer; checkpoints that are no longer kept stay here
const nameOf = (run, step, { source, reference }) => JSON.stringify([run, step, source, reference]);

export function Pinned({ run, checkpoints }) {
  const [offered, setOffered] = useState([]);
  useEffect(() => {
    const control = new AbortController();
    sentencesOf(run, control.signal).then(setOffered, () => {}); // a run need not have kept its validation set
    return () => control.abort();
  }, [run]);
  const [own, setOwn] = useState({}); // place: the sentence that a person put there
  const sentences = Array.from({ length: COUNT }, (_, at) => own[at] ?? offered[at]).filter(Boolean);
  const [problem, setProblem] = useState("");
  const [, setCount] = useState(0); // of answers that have come
  const wanted = JSON.stringify([run, checkpoints, sentences]);
  useEffect(() => {
    const control = new AbortController();
    fill(run, checkpoints, sentences, control.signal, () => setCount((n) => n + 1)).then(
      () => setProblem(""), (error) => !control.signal.aborted && setProblem(error.message),
    );
    return () => control.abort();
  }, [wanted]);
  const steps = [...new Set([...checkpoints, ...stepsOf(run)])].sort((one, other) => one - other);
  const series = useMemo(() => sentences.map((sentence, at) => ({
    label: `sentence ${at + 1}`,
    points: steps.flatMap((step) => {
      const score = known.get(nameOf(run, step, sentence))?.reference_per_token;
      return score === undefined || score === null ? [] : [[step, score]];
    }),
  })), [wanted, known.size, steps.join()]);
  if (!sentences.length) return null;
  return html`<section class="sheet study pinned" aria-label="Pinned sentences">
    <header><h2>Watch it learn</h2><span class="hint">the same sentences at every checkpoint; words that the reference has too are marked</span></header>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <ol class="pins">${sentences.map((sentence, at) => html`<${Sentence} key=${at} number=${at + 1} ...${{ run, sentence, steps }}
      onChange=${(changed) => setOwn({ ...own, [at]: changed })} />`)}</ol>
    <div class="charts"><${Chart} title="Log-probability of the reference, a token" series=${series} format=${two} formatX=${whole} dots /></div>
  </section>`;
}

const stepsOf = (run) => [...known.keys()].map((name) => JSON.parse(name)).filter(([name]) => name === run).map(([, step]) => step);

// The newest checkpoint first: that is what one waits for. A checkpoint is loaded once for all sentences.
async function fill(run, checkpoints, sentences, signal, onAnswer) {
  for (const step of [...checkpoints].reverse()) {
    const missing = sentences.filter((sentence) => !known.has(nameOf(run, step, sentence)));
    while (missing.length && !signal.aborted) {
      try {
        const answers = await pinned(run, { step, sentences: missing }, signal);
        answers.forEach((answer, at) => known.set(nameOf(run, step, missing[at]), answer));
        missing.length = 0;
        onAnswer();
      } catch (error) {
        if (error.status === 400) break; // it is no longer kept
        if (error.status !== 503) throw error;
        await new Promise((resolve) => setTimeout(resolve, AGAIN));
      }
    }
  }
}

function Sentence({ number, run, sentence, steps, onChange }) {
  const [editing, setEditing] = useState(null);
  const [all, setAll] = useState(false);
  const told = [...steps].reverse();
  const done = (event) => {
    event.preventDefault();
    if (editing.source.trim()) onChange({ source: editing.source.trim(), reference: editing.reference.trim() });
    setEditing(null);
  };
  const field = (name, label) => html`<label class="field">${label} <input type="text" value=${editing[name]} maxlength="2000" dir="auto" spellcheck=${false}
    onInput=${(event) => setEditing({ ...editing, [name]: event.target.value })} /></label>`;
  return html`<li>
    ${editing
      ? html`<form onSubmit=${done}>${field("source", `Sentence ${number}`)}${field("reference", "Its reference")}
          <button type="submit">Pin it</button> <button type="button" class="quiet" onClick=${() => setEditing(null)}>Leave it</button></form>`
      : html`<p class="pin-head"><b dir="auto">${sentence.source}</b> <button type="button" class="quiet" aria-label=${`Pin another in place of sentence ${number}`} onClick=${() => setEditing(sentence)}>Change</button></p>
        ${sentence.reference && html`<p class="reference" dir="auto"><span class="hint">reference</span> ${sentence.reference}</p>`}`}
    <ol class="fills">${told.slice(0, all ? told.length : SHOWN).map((step) => {
      const answer = known.get(nameOf(run, step, sentence));
      return html`<li key=${step} data-step=${step}><span class="hint number">step ${whole(step)}</span>
        <span dir="auto" class="filled">${answer ? marked(answer.translation || "(nothing)", sentence.reference) : "…"}</span>
        <span class="hint number" data-reference=${answer?.reference_per_token?.toFixed(4)}>${answer?.reference_per_token != null ? two(answer.reference_per_token) : ""}</span></li>`;
    })}</ol>
    ${told.length > SHOWN && html`<button type="button" class="quiet" onClick=${() => setAll(!all)}>${all ? "Show fewer" : `All ${told.length} checkpoints`}</button>`}
  </li>`;
}

// The words that the reference has too, each as often as it is there.
function marked(text, reference) {
  const left = reference.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return text.split(/([\p{L}\p{M}\p{N}]+)/u).map((piece, at) => {
    const found = at % 2 ? left.indexOf(piece.toLowerCase()) : -1;
    if (found < 0) return piece;
    left.splice(found, 1);
    return html`<mark>${piece}</mark>`;
  });
}
