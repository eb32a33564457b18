// Several heads: the four that differ most for one query, and what is lost when they are averaged.

import { html } from "../../vendor/htm-preact.js";
import { Found } from "./found.js";
import { insideAddress, Lesson, TokenRow } from "./lesson.js";
import { entropy, erased, mean, mostDifferent, useFetched } from "./model.js";
import { unitAt, weightsOf } from "./units.js";

export function Heads({ frame, seen, units, more, spot, onSpot }) {
  const { value } = useFetched(() => more.attention("encoder", spot.layer), [more, spot.layer], more);
  const fits = value && value.shape[1] === seen.source.length;
  const at = unitAt(units.source, spot.row);
  const rows = fits ? Array.from({ length: seen.num_heads }, (_, head) => weightsOf((row) => value.row(head, row), units.source[at], units.source)) : [];
  const chosen = fits ? mostDifferent(rows, 4) : [];
  const those = chosen.map((head) => rows[head]);
  const average = fits ? mean(those) : [];
  const peak = fits ? Math.max(...those.map((row) => Math.max(...row))) : 0;
  return html`<${Lesson} frame=${frame} equation="heads"
    link=${insideAddress(seen.question, { kind: "encoder", layer: spot.layer, row: spot.row, head: chosen[0] ?? 0 })}
    text=${html`<p>A word is tied to others in more ways than one: to its verb, to its article, to the word before. One softmax has one set of weights, so it would
      have to blend them all. The Transformer runs ${seen.num_heads} attentions side by side instead, each on its own smaller projection: the <em>heads</em>.</p>
      <p>Here are the ${chosen.length} heads of layer ${spot.layer} that differ most for what asks, and below them their average: what is left if the same weights
      must serve them all. What it erases is measured: how much more in doubt the average is than its parts are.</p>
      <p>That is arithmetic, not what a model with a single head would do. Trained with one head, a model need not blur: it can look at one place and leave the others.
      The lab has trained such models; what it found stands below.</p>`}>
    <${TokenRow} label="What asks, for all heads" units=${units.source} chosen=${at} onChoose=${(index) => onSpot({ row: units.source[index].main })} />
    ${fits && html`<div class="attention strips" role="region" tabindex="0" aria-label="Heads"><table>
      <thead><tr><td></td>${units.source.map(({ text }, index) => html`<th scope="col" key=${index}><span>${text}</span></th>`)}<td></td></tr></thead>
      <tbody>
        ${chosen.map((head) => html`<${Strip} key=${head} name=${`head ${head}`} weights=${rows[head]} shown=${`head ${head} entropy`} />`)}
        <${Strip} name="average" weights=${average} shown="average entropy" />
      </tbody></table></div>
      <p class="measures">erased by averaging: <b data-shown="erased">${erased(those).toFixed(3)}</b> nats</p>
      <p class="measures">the surest head gives one <b>${peak.toFixed(2)}</b>, the average gives none more than <b>${Math.max(...average).toFixed(2)}</b></p>`}
    <${Found} of="heads" notes open />
  </${Lesson}>`;
}

function Strip({ name, weights, shown }) {
  return html`<tr class=${name === "average" ? "average" : ""}><th scope="row">${name}</th>
    ${weights.map((weight, at) => html`<td key=${at} style=${{ "--weight": weight.toFixed(4) }} title=${weight.toFixed(3)}><span class="unseen">${weight.toFixed(2)}</span></td>`)}
    <td class="number small plain">entropy <b data-shown=${shown}>${entropy(weights).toFixed(3)}</b></td></tr>`;
}
