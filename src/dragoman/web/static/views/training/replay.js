// One sentence through every kept checkpoint: how its translation, and where the decoder looks, came about.

import { html, useEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { AttentionTable, HeadChoice } from "../../attention.js";
import { pinned, replay } from "../../runs.js";
import { two, whole } from "../numbers.js";

const PAUSE = 400; // milliseconds without a key before it is translated
const PACE = 900; // milliseconds a checkpoint when it is played

export function Replay({ run, checkpoints, valid, first, firstStep, onShown }) {
  const [text, setText] = useState(first);
  const [typed, setTyped] = useState(null); // a reference of one's own; null: that of the validation, if it has the text
  const reference = typed ?? valid.find(({ source }) => source === text.trim())?.reference ?? "";
  const [found, setFound] = useState(new Map()); // step: what it made of the text
  const [scores, setScores] = useState(new Map()); // step: log-probability of the reference, a token
  const [problem, setProblem] = useState("");
  const [step, setStep] = useState(Number(firstStep) || null); // null: the newest
  const [head, setHead] = useState({ layer: -1, head: -1 }); // layer -1: the last
  const [playing, setPlaying] = useState(false);
  const asked = useRef("");
  const steps = checkpoints.join();

  useEffect(() => { // the newest first: that is what one sees
    const control = new AbortController();
    const fresh = asked.current !== text;
    if (fresh) {
      setFound(new Map());
      setProblem("");
    }
    const timer = setTimeout(async () => {
      asked.current = text;
      for (const wanted of [...checkpoints].reverse()) {
        if (!fresh && found.has(wanted)) continue;
        try {
          const answer = await replay(run.name, { text: text.trim(), step: wanted }, control.signal);
          setFound((known) => new Map(known).set(wanted, answer));
        } catch (error) {
          if (control.signal.aborted) return;
          setProblem(error.message);
          return;
        }
      }
    }, text === first && fresh ? 0 : PAUSE);
    if (!text.trim()) clearTimeout(timer);
    return () => { clearTimeout(timer); control.abort(); };
  }, [text, steps, run.name]);

  useEffect(() => { // of the reference, which is the same text at every checkpoint
    setScores(new Map());
    if (!reference.trim() || !text.trim()) return undefined;
    const control = new AbortController();
    const timer = setTimeout(async () => {
      for (const wanted of [...checkpoints].reverse()) {
        try {
          const [answer] = await pinned(run.name, { step: wanted, sentences: [{ source: text.trim(), reference }] }, control.signal);
          setScores((all) => new Map(all).set(wanted, answer.reference_per_token));
        } catch {
          return; // the translations stand without it, and say what is wrong
        }
      }
    }, 2 * PAUSE);
    return () => { clearTimeout(timer); control.abort(); };
  }, [text, reference, steps, run.name]);

  const at = step !== null && checkpoints.includes(step) ? checkpoints.indexOf(step) : checkpoints.length - 1;
  const current = checkpoints[at];
  const goTo = (index) => setStep(checkpoints[index]);
  useEffect(() => { onShown(text, step ?? undefined); }, [text, step]);
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setTimeout(() => {
      if (at + 1 < checkpoints.length) goTo(at + 1);
      else setPlaying(false);
    }, PACE);
    return () => clearTimeout(timer);
  }, [playing, at, steps]);
  const play = () => {
    if (!playing && at === checkpoints.length - 1) goTo(0);
    setPlaying(!playing);
  };

  const now = found.get(current);
  const layer = now ? (head.layer < 0 ? now.layers - 1 : head.layer) : 0;
  return html`<section class="sheet study replay" aria-label="As it learned">
    <header><h2>As it learned</h2><span class="hint">one sentence through the ${checkpoints.length} kept checkpoints</span></header>
    <label class="field">Sentence <input type="text" value=${text} dir="auto" spellcheck=${false} onInput=${(event) => { setText(event.target.value); setTyped(null); }} /></label>
    <label class="field">Reference, which every checkpoint is scored by <input type="text" value=${reference} dir="auto" spellcheck=${false} onInput=${(event) => setTyped(event.target.value)} /></label>
    <div class="stepper">
      <button type="button" class="go" onClick=${play} disabled=${checkpoints.length < 2}>${playing ? "Pause" : "Play"}</button>
      <input type="range" min="0" max=${checkpoints.length - 1} value=${at} aria-label="Checkpoint" aria-valuetext=${`step ${current}`}
        onInput=${(event) => { setPlaying(false); goTo(Number(event.target.value)); }} />
      <span class="where">step <b>${whole(current)}</b></span>
    </div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <ol class="states">${checkpoints.map((one, index) => html`<li key=${one} class=${index === at ? "current" : ""} aria-current=${index === at ? "step" : undefined}>
      <button type="button" class="quiet" onClick=${() => goTo(index)}>step ${whole(one)}</button>
      <span dir="auto">${found.get(one)?.translation ?? "…"}</span>
      ${scores.has(one)
        ? html`<span class="hint number" data-reference=${scores.get(one).toFixed(4)}>reference ${two(scores.get(one))} a token</span>`
        : found.has(one) && !reference && html`<span class="hint number">its own words: log P ${two(found.get(one).log_probability)}</span>`}
    </li>`)}</ol>
    ${now && html`<div class="replay-attention">
      <header><h3>Cross-attention at step ${whole(current)}</h3>
        <${HeadChoice} layers=${now.layers} heads=${now.heads} layer=${layer} head=${head.head} onChoose=${(l, h) => setHead({ layer: l, head: h })} />
      </header>
      <p class="note">A row for each token of the translation: where in the source the decoder looked when it wrote it.</p>
      <${AttentionTable} caption=${`Cross-attention at step ${current}`} rows=${now.produced} columns=${now.source}
        weight=${(row, column) => now.weight(layer, head.head, row, column)} />
    </div>`}
  </section>`;
}
