// Why it won: the paper's Table 1 for any length and width, and where its balance tips.

import { html, useState } from "../../vendor/htm-preact.js";
import { Found } from "./found.js";
import { Lesson, Slider } from "./lesson.js";

const MOST = 48; // steps of a slider: a quarter of an octave each, from 1 to 4,096
const valueAt = (step) => Math.round(2 ** (step / 4));
const stepAt = (value) => Math.round(4 * Math.log2(value));
const written = (value) => value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });

const POWER = (base, above) => html`${base}<sup>${above}</sup>`;
const V = (name) => html`<i class="symbol">${name}</i>`;

const LAYERS = [
  { name: "self-attention", formula: html`${POWER(V("n"), 2)}${V("d")}`, cost: ({ n, d }) => n * n * d, steps: () => 1, path: () => 1, steps_of: "1", path_of: "1" },
  { name: "recurrent", formula: html`${V("n")}${POWER(V("d"), 2)}`, cost: ({ n, d }) => n * d * d, steps: ({ n }) => n, path: ({ n }) => n, steps_of: V("n"), path_of: V("n") },
  { name: "convolutional", formula: html`${V("kn")}${POWER(V("d"), 2)}`, cost: ({ n, d, k }) => k * n * d * d, steps: () => 1, path: ({ n, k }) => Math.max(1, Math.ceil(Math.log(n) / Math.log(k) - 1e-9)), steps_of: "1", path_of: html`log<sub>${V("k")}</sub> ${V("n")}` },
  { name: "self-attention, restricted", formula: html`${V("rnd")}`, cost: ({ n, d, r }) => Math.min(r, n) * n * d, steps: () => 1, path: ({ n, r }) => Math.max(1, Math.ceil(n / r)), steps_of: "1", path_of: html`${V("n")}/${V("r")}` },
];

export function Costs({ frame, seen }) {
  const own = { n: seen.source.length, d: seen.d_model };
  const [steps, setSteps] = useState({ n: null, d: null, r: stepAt(16) });
  const [k, setK] = useState(3);
  const at = { n: steps.n === null ? own.n : valueAt(steps.n), d: steps.d === null ? own.d : valueAt(steps.d), r: valueAt(steps.r), k };
  const costs = LAYERS.map(({ cost }) => cost(at));
  const most = Math.max(...costs);
  const least = Math.min(...costs);
  const [attention, recurrent] = costs;
  const times = Math.max(attention, recurrent) / Math.min(attention, recurrent);
  const slide = (name, label) => html`<${Slider} label=${label} value=${steps[name] ?? stepAt(own[name])} most=${MOST} shown=${at[name].toLocaleString("en")} onMove=${(step) => setSteps({ ...steps, [name]: step })} />`;
  return html`<${Lesson} frame=${frame} equation="cheaper" wide
    text=${html`<p>The paper argues with one table: what a layer costs for ${V("n")} tokens of ${V("d")} numbers, how many steps must wait for one another, and how far news must travel between two positions.
      Self-attention’s products grow with the square of the length, a recurrent layer’s with the square of the width. Sentences are shorter than vectors are wide, so
      attention was cheaper. And nothing waits: a recurrent layer has ${V("n")} steps one after the other, which no machine can do at once.</p>
      <p>Move ${V("n")} and ${V("d")}. Where ${V("n")} grows beyond ${V("d")}, the balance tips: long texts are what attention pays for. The memory for its weights, ${V("n")} times ${V("n")} for each head, grows alike.</p>`}>
    <div class="controls">${slide("n", html`length ${V("n")}`)}${slide("d", html`width ${V("d")}`)}
      <${Slider} label=${html`kernel ${V("k")}`} value=${k} least=${2} most=${9} onMove=${setK} />${slide("r", html`neighbours ${V("r")}`)}
      <button type="button" onClick=${() => setSteps({ ...steps, n: null, d: null })}>Your sentence: n ${own.n}, d ${own.d}</button></div>
    <div class="scroll plain-scroll" role="region" tabindex="0" aria-label="Table 1"><table class="costs">
      <thead><tr><th scope="col">layer</th><th scope="col">products</th><td class="gauge-cell"></td><th scope="col" class="number">one after the other</th><th scope="col" class="number">longest path</th></tr></thead>
      <tbody>${LAYERS.map(({ name, formula, steps: waits, path, steps_of: waitsOf, path_of: pathOf }, index) => html`<tr key=${name} class=${costs[index] === least ? "marked" : ""}>
        <th scope="row">${name}</th>
        <td class="number" data-cost=${costs[index]}>${formula} = <b>${written(costs[index])}</b></td>
        <td class="gauge-cell" title="on a logarithmic scale"><i style=${{ width: `${(100 * Math.log(costs[index] + 1)) / Math.log(most + 1)}%` }}></i></td>
        <td class="number" data-steps=${waits(at)}>${waitsOf} = <b>${waits(at).toLocaleString("en")}</b></td>
        <td class="number" data-path=${path(at)}>${pathOf} = <b>${path(at).toLocaleString("en")}</b></td></tr>`)}</tbody>
    </table></div>
    <p class="measures" data-shown="verdict">${attention === recurrent ? "n = d: both cost the same" : html`${attention < recurrent ? "n < d: self-attention" : "n > d: the recurrent layer"} needs fewer products, by a factor of <b>${written(times)}</b>`}</p>
    <p class="small">The table leaves out the projections to queries, keys, values and back, 4${V("n")}${POWER(V("d"), 2)} products in a layer of self-attention: with them it costs${" "}
      <b>${written(attention + 4 * at.n * at.d * at.d)}</b> here. A convolution’s path is that of a dilated stack of ⌈log<sub>k</sub> n⌉ layers.</p>
    <${Found} of="table1" notes /><${Found} of="rnn" />
  </${Lesson}>`;
}
