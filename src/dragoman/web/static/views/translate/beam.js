// The beam search of one sentence: at each step what was kept, what ended, what was pruned and why.
// Moving α ranks what ended anew at once; the search itself follows as soon as the slider rests.

import { html, useEffect, useMemo, useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { BeamTree } from "./beam-tree.js";
import { decimal, lengthPenalty, percent, shownPiece } from "./words.js";

const PAUSE = 300;

export function BeamPanel({ about, translation, children }) {
  const [open, setOpen] = useState(false);
  const { segments, languages, state } = translation;
  if (!segments.length) return null;
  return html`<details class="sheet beam" open=${open} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><h2>How it was found</h2><span class="hint">the beam search, step by step</span></summary>
    ${open && state === "done" && html`<${Beam} about=${about} segments=${segments} languages=${languages} />`}
    ${open && html`<div class="beam-body">${children}</div>`}
  </details>`;
}

function Beam({ about, segments, languages }) {
  const own = about.pairs.find((pair) => pair.source === languages.source && pair.target === languages.target);
  const [sentence, setSentence] = useState(0);
  const [alpha, setAlpha] = useState(own.alpha);
  const [size, setSize] = useState(own.beam);
  const [record, setRecord] = useState(null);
  const [problem, setProblem] = useState("");
  const [step, setStep] = useState(0);
  const segment = segments[Math.min(sentence, segments.length - 1)];
  const begun = useRef(false);

  useEffect(() => {
    const control = new AbortController();
    const question = {
      text: segment.source, source: languages.source, target: languages.target, beam: size, alpha, prefix: segment.prefix ?? [],
    };
    const ask = () =>
      api.beam(question, control.signal).then(
        (found) => { setRecord(found); setProblem(""); setStep((at) => Math.min(at, found.steps.length - 1)); },
        (error) => error.name !== "AbortError" && setProblem(error.message),
      );
    const timer = setTimeout(ask, begun.current ? PAUSE : 0);
    begun.current = true;
    return () => { clearTimeout(timer); control.abort(); };
  }, [segment.source, (segment.prefix ?? []).join(" "), size, alpha, languages.source, languages.target]);

  const ranked = useMemo(
    () => (record?.finished ?? [])
      .map((one) => ({ ...one, score: one.log_probability / lengthPenalty(one.length, alpha) }))
      .sort((one, other) => other.score - one.score),
    [record, alpha],
  );

  return html`<div class="beam-body">
    <div class="controls">
      ${segments.length > 1 && html`<label>Sentence
        <select value=${sentence} onChange=${(event) => { setSentence(Number(event.target.value)); setStep(0); }}>
          ${segments.map((one, index) => html`<option value=${index}>${index + 1}. ${one.source.slice(0, 50)}</option>`)}
        </select></label>`}
      <label>Beam
        <input type="number" min="1" max=${about.beam_limit} value=${size}
          onChange=${(event) => setSize(Math.min(about.beam_limit, Math.max(1, Math.round(Number(event.target.value)) || 1)))} /></label>
      <label class="slide">Length penalty α = <strong>${alpha.toFixed(1)}</strong>
        <input type="range" min="0" max="2" step="0.1" value=${alpha} onInput=${(event) => setAlpha(Number(event.target.value))} /></label>
    </div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${!record && !problem && html`<p class="note">Searching …</p>`}
    ${record && html`
      <${BeamTree} record=${record} winner=${ranked[0]} alpha=${alpha} step=${step} onStep=${setStep} />
      <p class="note">A branch is as wide as its token is probable after what it continues; what was pruned is pale. Press a token to see its step below.</p>
      <${Finished} ranked=${ranked} alpha=${alpha} />
      <${Step} record=${record} step=${step} setStep=${setStep} alpha=${alpha} forced=${segment.prefix?.length ?? 0} />`}
  </div>`;
}

function Finished({ ranked, alpha }) {
  return html`<h3>What ended, best first</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="What ended, best first"><table>
      <thead><tr><th>Translation</th><th class="number optional">log P</th><th class="number optional">length</th>
        <th class="number optional">lp(${alpha.toFixed(1)})</th><th class="number">log P / lp</th></tr></thead>
      <tbody>${ranked.map((one, index) => html`<tr key=${one.text + one.length} class=${index === 0 ? "best" : ""}>
        <td class="said">${one.text || html`<em>nothing</em>`}</td>
        <td class="number optional">${decimal(one.log_probability)}</td>
        <td class="number optional">${one.length}</td>
        <td class="number optional">${lengthPenalty(one.length, alpha).toFixed(2)}</td>
        <td class="number"><strong>${decimal(one.score)}</strong></td>
      </tr>`)}</tbody>
    </table></div>
    <p class="note">lp(α) = ((5 + length) / 6)<sup>α</sup>, the end symbol counted. A larger α favours longer translations.</p>`;
}

const FATES = { kept: ["✓", "kept"], finished: ["■", "ended"], pruned: ["✕", "pruned"] };

function Step({ record, step, setStep, alpha, forced }) {
  const last = record.steps.length - 1;
  const at = Math.min(step, last);
  const level = record.steps[at];
  return html`<div class="stepper">
      <h3 id="step-name">Step ${at + 1} of ${last + 1}</h3>
      <button type="button" class="quiet" onClick=${() => setStep(at - 1)} disabled=${at === 0} aria-label="Step before">‹</button>
      <input type="range" min="0" max=${last} value=${at} aria-labelledby="step-name" onInput=${(event) => setStep(Number(event.target.value))} />
      <button type="button" class="quiet" onClick=${() => setStep(at + 1)} disabled=${at === last} aria-label="Next step">›</button>
    </div>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="step-name"><table class="steps">
      <thead><tr><th>Fate</th><th>Hypothesis</th><th class="number optional">P(token)</th><th class="number optional">log P</th>
        <th class="number">log P / lp</th><th>Why</th></tr></thead>
      <tbody>${level.map((one) => html`<tr class=${one.fate}>
        <td class="fate"><span aria-hidden="true">${FATES[one.fate][0]}</span> ${FATES[one.fate][1]}</td>
        <td class="said">${before(one)}<b>${shownPiece(one.token)}</b></td>
        <td class="number optional">${percent(one.token_probability)}</td>
        <td class="number optional">${decimal(one.log_probability)}</td>
        <td class="number">${decimal(one.log_probability / lengthPenalty(one.length, alpha))}</td>
        <td class="why">${at < forced ? "forced: the beginning was chosen" : why(one, level, at === last, record.beam)}</td>
      </tr>`)}</tbody>
    </table></div>`;
}

// The hypothesis without its newest token, which is shown in its own way. After a mark of inline case (⇧, ⇪) the text has
// capitals where the token has none.
function before({ text, token }) {
  const piece = token.replaceAll("▁", " ").trimStart();
  const ends = piece && text.slice(-piece.length).toLowerCase() === piece.toLowerCase();
  const rest = token !== "</s>" && ends ? text.slice(0, text.length - piece.length) : text;
  return token.startsWith("▁") || token === "</s>" ? `${rest.trimEnd()} ` : rest;
}

function why(one, level, isLast, beam) {
  if (one.fate === "finished") return "it ended, and stands among those above";
  const kept = level.filter((other) => other.fate === "kept");
  if (one.fate === "kept") {
    return isLast ? "not continued: nothing better could come of it" : `number ${kept.indexOf(one) + 1} of the ${beam} that go on`;
  }
  const worst = kept.at(-1);
  if (!worst) return "the search ended here";
  return `${kept.length} better ones go on, the last with ${decimal(worst.log_probability)}; this one has ${decimal(one.log_probability)}`;
}
