// Why scores are divided by the root of d_k: random vectors of any size, and this head's own scores.

import { html, useMemo, useState } from "../../vendor/htm-preact.js";
import { Found } from "./found.js";
import { insideAddress, Lesson, Slider } from "./lesson.js";
import { entropy, normals, softmax, useFetched } from "./model.js";
import { unitAt } from "./units.js";

const KEYS = 8;
const LARGEST = 9; // 2^9 = 512
const DK = html`<span class="symbol">d<sub>k</sub></span>`;
const SCALINGS = [
  { name: "unscaled", label: "unscaled", by: () => 1 },
  { name: "over √d_k", label: html`over √${DK}`, by: (size) => Math.sqrt(size) },
  { name: "over d_k", label: html`over ${DK}`, by: (size) => size },
];

export function Scale({ frame, seen, units, more, spot }) {
  const [power, setPower] = useState(6);
  const [seed, setSeed] = useState(1);
  const size = 2 ** power;
  const products = useMemo(() => dotProducts(seed, size), [seed, size]);
  const { value } = useFetched(() => more.attention("encoder", spot.layer, "scores"), [more, spot.layer], more);
  const asking = units.source[unitAt(units.source, spot.row)];
  const own = value && value.shape[1] === seen.source.length ? value.row(spot.head, asking.main).map((score) => score / seen.scale) : null;
  return html`<${Lesson} frame=${frame} equation="variance"
    link=${insideAddress(seen.question, { kind: "encoder", ...spot })}
    text=${html`<p>A score is a sum of ${DK} products. If the numbers in queries and keys are about as large as 1, the sum grows like √${DK}: longer vectors, larger
      scores. Softmax of large scores gives nearly everything to one token, and then hardly any gradient is left to learn from.</p>
      <p>Divided by √${DK} the scores keep their size, whatever ${DK} is. Divided by ${DK} they would shrink, and every token would get the same. Drag ${DK} and
      watch the three: one random query and ${KEYS} random keys. The entropy says how evenly the weights are spread.</p>
      <p>Below, the same three for the head and the token chosen above; this run has ${DK} = ${seen.d_k} and multiplies by ${seen.scale.toFixed(4)}.</p>`}>
    <div class="controls">
      <${Slider} label=${DK} value=${power} most=${LARGEST} shown=${size} onMove=${setPower} />
      <button type="button" onClick=${() => setSeed(seed + 1)}>Other vectors</button>
    </div>
    <${Three} id="random" label="random vectors" products=${products} size=${size} units=${products.map((_, at) => ({ text: `key ${at}`, tokens: [at] }))} />
    ${own && html`<h3>Head ${spot.layer}.${spot.head}, asked by “${asking.text}”, ${DK} = ${seen.d_k}</h3>
      <${Three} id="own" label="this head" products=${own} size=${seen.d_k} units=${units.source} />`}
    <${Found} of="scaling" notes />
  </${Lesson}>`;
}

// The first numbers of the same long vectors: dragging only makes them longer.
function dotProducts(seed, size) {
  const longest = 2 ** LARGEST;
  const drawn = normals(seed, (KEYS + 1) * longest);
  return Array.from({ length: KEYS }, (_, key) => {
    let sum = 0;
    for (let at = 0; at < size; at += 1) sum += drawn[at] * drawn[(key + 1) * longest + at];
    return sum;
  });
}

// One bar for each unit: of a word, what all its pieces get.
function Three({ id, label, products, size, units }) {
  return html`<div class="three" data-products=${products.map((product) => product.toFixed(5)).join(" ")} data-of=${id}>
    ${SCALINGS.map(({ name, label: title, by }) => {
      const byPiece = softmax(products.map((product) => product / by(size)));
      const weights = units.map(({ tokens }) => tokens.reduce((so, at) => so + byPiece[at], 0));
      const spread = entropy(weights);
      return html`<figure key=${name}>
        <div class="columns" role="img" aria-label=${`${label}, ${name}: largest weight ${Math.max(...weights).toFixed(2)}`}>
          ${weights.map((weight, at) => html`<i key=${at} title=${`${units[at].text}: ${weight.toFixed(3)}`} style=${{ height: `${(100 * weight).toFixed(2)}%` }}></i>`)}
        </div>
        <figcaption>${title}<br />entropy <b data-entropy=${`${id} ${name}`}>${spread.toFixed(3)}</b>
          <span class="hint"> of ${Math.log(weights.length).toFixed(3)}</span></figcaption>
      </figure>`;
    })}
  </div>`;
}
