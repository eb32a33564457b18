// Several heads: the four that differ most for one query, and what is lost when they are averaged.

import { html } from "../../vendor/htm-preact.js";
import { shownToken } from "../inside/state.js";
import { insideAddress, Lesson, TokenRow } from "./lesson.js";
import { entropy, erased, mean, mostDifferent, useFetched } from "./model.js";

export function Heads({ number, seen, more, spot, onSpot }) {
  const { value } = useFetched(() => more.attention("encoder", spot.layer), [more, spot.layer], more);
  const fits = value && value.shape[1] === seen.source.length;
  const rows = fits ? Array.from({ length: seen.num_heads }, (_, head) => value.row(head, spot.row)) : [];
  const chosen = fits ? mostDifferent(rows, 4) : [];
  const those = chosen.map((head) => rows[head]);
  const average = fits ? mean(those) : [];
  const peak = fits ? Math.max(...those.map((row) => Math.max(...row))) : 0;
  return html`<${Lesson} number=${number} id="heads" title="Several heads see several things" equation="heads"
    link=${insideAddress(seen.question, { kind: "encoder", layer: spot.layer, row: spot.row, head: chosen[0] ?? 0 })}
    text=${html`<p>A word is tied to others in more ways than one: to its verb, to its article, to the word before. One softmax has one set of weights, so it would
      have to blend them all. The Transformer runs ${seen.num_heads} attentions side by side instead, each on its own smaller projection: the <em>heads</em>.</p>
      <p>Here are the ${chosen.length} heads of layer ${spot.layer} that differ most for the token that asks, and below them their average, which is all that one head could
      say for them. What the average erases is measured: how much more in doubt it is than its parts are.</p>`}>
    <${TokenRow} label="The token that asks, for all heads" tokens=${seen.source} chosen=${spot.row} onChoose=${(row) => onSpot({ row })} />
    ${fits && html`<div class="attention strips" role="region" tabindex="0" aria-label="Heads"><table>
      <thead><tr><td></td>${seen.source.map((token, at) => html`<th scope="col" key=${at}><span>${shownToken(token)}</span></th>`)}<td></td></tr></thead>
      <tbody>
        ${chosen.map((head) => html`<${Strip} key=${head} name=${`head ${head}`} weights=${rows[head]} shown=${`head ${head} entropy`} />`)}
        <${Strip} name="average" weights=${average} shown="average entropy" />
      </tbody></table></div>
      <p class="measures">erased by averaging: <b data-shown="erased">${erased(those).toFixed(3)}</b> nats</p>
      <p class="measures">the surest head gives one token <b>${peak.toFixed(2)}</b>, the average gives none more than <b>${Math.max(...average).toFixed(2)}</b></p>`}
  </${Lesson}>`;
}

function Strip({ name, weights, shown }) {
  return html`<tr class=${name === "average" ? "average" : ""}><th scope="row">${name}</th>
    ${weights.map((weight, at) => html`<td key=${at} style=${{ "--weight": weight.toFixed(4) }} title=${weight.toFixed(3)}><span class="unseen">${weight.toFixed(2)}</span></td>`)}
    <td class="number hint plain">entropy <b data-shown=${shown}>${entropy(weights).toFixed(3)}</b></td></tr>`;
}
