// The living machine: the whole encoder-decoder in one moving picture, with the loaded model's numbers.

import { html, useEffect, useMemo, useState } from "../../vendor/htm-preact.js";
import { useWidth } from "../inside/drawing.js";
import { shownToken } from "../inside/state.js";
import { insideAddress, Lesson, minus, strongest } from "./lesson.js";
import { courseOf, lasting, tellingOf } from "./machine-course.js";
import { layoutOf, Picture } from "./machine-picture.js";
import { useFetched } from "./model.js";
import { weightsOf } from "./units.js";

const STRONG = 0.55; // of the strongest number has full colour: few are near it

export function Machine({ frame, seen, units, more, address, goTo }) {
  const [box, width] = useWidth();
  const [step, setStep] = useState(null); // null: where a first look says most
  const [playing, setPlaying] = useState(false);
  const { value: found, problem } = useFetched(() => more.machine(), [more], more);
  const course = useMemo(() => courseOf(seen, units), [seen, units]);
  const first = course.findIndex(({ stage, at }) => stage === "output" && at === Math.min(1, units.produced.length - 1));
  const now = Math.min(step ?? first, course.length - 1);
  const moment = course[now];
  useEffect(() => {
    if (!playing) return undefined;
    if (now >= course.length - 1) { setPlaying(false); return undefined; }
    const timer = setTimeout(() => setStep(now + 1), lasting(moment));
    return () => clearTimeout(timer);
  }, [playing, now, course]);
  useEffect(() => { setStep(null); setPlaying(false); }, [course]);
  const machine = useMemo(() => found && named(found), [found]);
  const grouped = useMemo(() => found && groupedBy(found, units), [found, units]);
  const layout = useMemo(() => width > 0 && layoutOf(width, units, 16), [width, units]);
  const go = (to) => { setPlaying(false); setStep(Math.max(0, Math.min(course.length - 1, to))); };
  const word = (by) => {
    const at = course.findIndex((one) => one.stage === "output" && one.at === Math.max(0, Math.min(units.produced.length - 1, moment.at + by)));
    go(at);
  };
  const play = () => { if (!playing && now >= course.length - 1) setStep(0); setPlaying(!playing); };
  const onKey = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || event.target.tagName === "INPUT") return;
    event.preventDefault();
    go(now + by);
  };
  return html`<${Lesson} frame=${frame} wide
    link=${insideAddress(seen.question, { kind: "cross", layer: seen.decoder_layers - 1, row: Math.max(0, moment.at) })}
    text=${html`<p>Above, the <em>encoder</em> reads your sentence; below, the <em>decoder</em> writes the translation, a word at a time, and each word that it has written goes back in. Play it, step through it, or drag. Every
      line and every cell is a number of this model; each part leads to its lesson.</p>`}>
    <div class="player" role="group" aria-label="The machine’s course">
      <button type="button" class="go" onClick=${play}>${playing ? "Pause" : now >= course.length - 1 ? "Play again" : "Play"}</button>
      <button type="button" onClick=${() => go(0)}>From the start</button>
      <button type="button" aria-label="Step back" onClick=${() => go(now - 1)}>‹</button>
      <button type="button" aria-label="Step" onClick=${() => go(now + 1)}>›</button>
      <button type="button" onClick=${() => word(1)} disabled=${moment.at >= units.produced.length - 1}>Next word</button>
      <input type="range" min="0" max=${course.length - 1} value=${now} aria-label="Moment" aria-valuetext=${`${now + 1} of ${course.length}: ${moment.stage}`} onInput=${(event) => go(Number(event.target.value))} />
    </div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <div class="machine-box" ref=${box} onKeyDown=${onKey} data-stage=${moment.stage} data-layer=${moment.layer} data-at=${moment.at}>
      ${machine && layout && html`<div class="machine-says" style=${layout.narrow ? {} : { left: `${layout.beside}px` }}>
        <${Telling} ...${{ moment, seen, units, machine, grouped, playing, address, goTo }} />
        <p class="written" dir="auto" lang=${seen.question.target}>${units.produced.slice(0, Math.max(0, moment.at)).map(({ text }) => html`<span>${text}</span> `)}
          ${moment.stage === "output" && html`<span class="next">${units.produced[moment.at].text}</span>`}</p></div>`}
      ${machine && layout && html`<${Picture} ...${{ layout, moment, units, machine, grouped, address, goTo }} chosen=${moment.at < 0 ? "" : seen.produced[units.produced[moment.at].tokens[0]]} />`}
    </div>
    <p class="measures">all steps together: log-probability <b data-shown="log-probability">${minus(seen.log_probability)}</b></p>
  </${Lesson}>`;
}

function Telling({ moment, seen, units, machine, grouped, playing, address, goTo }) {
  const produced = units.produced[Math.max(0, moment.at)];
  const chance = Math.exp(produced.tokens.reduce((so, at) => so + seen.log_probabilities[at], 0));
  const weights = { attend: () => strongestIn(grouped.encoder(moment.layer)), self: () => strongestIn([grouped.self(moment.layer, moment.at)]), cross: () => strongestIn([grouped.cross(moment.layer, moment.at)]) }[moment.stage]?.();
  const [lesson, title, text] = tellingOf(moment, { seen, units, weights, next: machine.next[produced.tokens[0]][0].text, chance });
  return html`<p class="telling-now" aria-live=${playing ? "off" : "polite"}><b>${title}.</b> ${text} <a href=${address(lesson)} onClick=${() => goTo(lesson)}>Its lesson</a>
    ${moment.stage === "output" && html`<span class="unseen" data-shown="next probability">${chance.toFixed(4)}</span>`}</p>`;
}

// Not what a token gives itself: the strongest link between two.
function strongestIn(rows) {
  const best = { row: 0, column: 0, value: -1 };
  rows.forEach((row, at) => row.forEach((value, column) => {
    if (value > best.value && (rows.length === 1 || at !== column)) Object.assign(best, { row: at, column, value });
  }));
  return best;
}

// With candidates as readers see them; and the number that has the strongest colour, by what was done before: streams grow.
const named = (found) => ({ ...found, encoder: scaled(found.encoder), decoder: scaled(found.decoder), next: found.next.map((list) => list.map((one) => ({ ...one, text: shownToken(one.token) }))) });

const scaled = (stack) => ({ ...stack, most: [stack.embedded, ...stack.stages.map(({ streams }) => streams)].map((vectors) => STRONG * strongest(vectors)) });

// Mean attention of a layer's heads between words or pieces.
function groupedBy({ encoder, decoder }, units) {
  const stage = (stack, layer, name) => stack.stages.find((one) => one.layer === layer && one.name === name).weights;
  return {
    encoder: (layer) => units.source.map((unit) => weightsOf((row) => stage(encoder, layer, "self-attention")[row], unit, units.source)),
    self: (layer, at) => weightsOf((row) => stage(decoder, layer, "self-attention")[row], units.fed[at], units.fed.slice(0, at + 1)),
    cross: (layer, at) => weightsOf((row) => stage(decoder, layer, "cross-attention")[row], units.fed[at], units.source),
  };
}
