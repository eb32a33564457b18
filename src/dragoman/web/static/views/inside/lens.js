// The logit lens: what each layer of the decoder would have said under each token, and what the layers do to one.

import { html } from "../../vendor/htm-preact.js";
import { Failure } from "../failure.js";
import { useAnswer } from "./answer.js";
import { Diverging } from "./diverging.js";
import { positionOf, shownToken } from "./state.js";
import { Strip } from "./strip.js";

const BEST = 3; // candidates of the last layer that the table has

export function Lens({ data, seen, state, change }) {
  const key = JSON.stringify([seen.question, state.changes]);
  const { answer: lens, problem, retry } = useAnswer((signal) => data.lens({ ...seen.question, changes: state.changes }, signal), key);
  const at = positionOf(seen, state.at);
  const choose = (position) => change({ at: position });
  return html`<section class="sheet lens" aria-labelledby="lens-title">
    <div class="sheet-head"><h2 id="lens-title">What each layer would have said</h2>
      <span class="note">The last steps of the model, normalisation and output, after each layer of the decoder.</span></div>
    <${Strip} seen=${seen} chosen=${at} onChoose=${choose} />
    ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
    ${!lens && !problem && html`<p class="note">Computing …</p>`}
    ${lens && html`<${Table} lens=${lens} at=${at} onChoose=${choose} /><${Detail} lens=${lens} at=${at} />`}
  </section>`;
}

function Table({ lens, at, onChoose }) {
  const layers = lens.positions[0].map(({ layer }) => layer);
  const cell = (position, { token, probability }, chosen) => html`<td key=${position} class=${position === at ? "current" : ""}
    style=${{ "--weight": probability.toFixed(4) }} data-probability=${probability.toFixed(4)} title=${probability.toFixed(4)}
    onClick=${() => onChoose(position)}>${chosen ? html`<b>${shownToken(token)}</b>` : shownToken(token)}<span class="number">${probability.toFixed(2)}</span></td>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Each layer’s first choice"><table class="layers">
    <thead><tr><td></td>${lens.produced.map((token, position) => html`<th scope="col" key=${position} class=${position === at ? "current" : ""}>${shownToken(token)}</th>`)}</tr></thead>
    <tbody>
      ${layers.map((layer) => html`<tr key=${layer} data-layer=${layer}><th scope="row">layer ${layer}</th>
        ${lens.positions.map((readings, position) => cell(position, readings[layer].candidates[0], readings[layer].rank === 1))}</tr>`)}
      ${Array.from({ length: BEST - 1 }, (_, more) => html`<tr key=${`next ${more}`} class="more"><th scope="row">${more + 2}. choice</th>
        ${lens.positions.map((readings, position) => {
          const last = readings[layers.length - 1];
          const one = last.candidates[more + 1];
          return one ? cell(position, one, one.token === lens.produced[position]) : html`<td key=${position}></td>`;
        })}</tr>`)}
    </tbody>
  </table></div>
  <p class="note">In bold where it is the token that is said. The last rows are what the whole model would have said next best.</p>`;
}

function Detail({ lens, at }) {
  const token = shownToken(lens.produced[at]);
  return html`<h3>“${token}”, layer by layer</h3>
    <div class="readings">${lens.positions[at].map((reading) => html`<div key=${reading.layer} class="reading-of" data-layer=${reading.layer}>
      <h4>Layer ${reading.layer}: rank ${reading.rank}, <span class="number">${reading.probability.toFixed(4)}</span></h4>
      <ol class="weights candidates">${reading.candidates.map((one) => html`<li key=${one.token}><span>${shownToken(one.token)}</span>
        <meter class="chance" min="0" max="1" value=${one.probability} aria-label=${`probability of ${shownToken(one.token)}`}></meter>
        <span class="share">${one.probability.toFixed(4)}</span></li>`)}</ol>
      <${Shifts} name="promotes" shifts=${reading.promoted} /><${Shifts} name="suppresses" shifts=${reading.suppressed} />
    </div>`)}</div>`;
}

function Shifts({ name, shifts }) {
  return html`<p class="note">It ${name}${shifts.length ? "" : " nothing"}</p>
    <ul class=${`weights ${name}`}>${shifts.map(({ token, before, after }) => html`<li key=${token}><span>${shownToken(token)}</span>
      <${Diverging} value=${after - before} largest=${1} />
      <span class="share" title=${`from ${before.toFixed(4)} to ${after.toFixed(4)}`}>${after < before ? "−" : "+"}${Math.abs(after - before).toFixed(4)}</span></li>`)}</ul>`;
}
