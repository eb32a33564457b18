// The causal mask, on and off: what the decoder may see, and what its translation is worth both ways.

import { html, useState } from "../../vendor/htm-preact.js";
import { AttentionTable } from "../../attention.js";
import { shownToken } from "../inside/state.js";
import { Choice, insideAddress, Lesson } from "./lesson.js";
import { useFetched } from "./model.js";

const UNMASK = "decoder.*:unmask";
const minus = (value) => value.toFixed(3).replace("-", "−");

export function Mask({ number, seen, more }) {
  const [on, setOn] = useState(true);
  const [place, setPlace] = useState({ layer: 0, head: 0 });
  const layer = Math.min(place.layer, seen.decoder_layers - 1);
  const head = Math.min(place.head, seen.num_heads - 1);
  const { value } = useFetched(() => more.attention("decoder", layer, "weights", on ? [] : [UNMASK]), [more, layer, on], more);
  const outcome = useFetched(() => more.withoutMask(), [more], more);
  const fits = value && value.shape[1] === seen.fed.length;
  const both = outcome.value && outcome.value.before.length === seen.produced.length ? outcome.value : null;
  return html`<${Lesson} number=${number} id="mask" title="No looking ahead" equation="mask"
    link=${insideAddress(seen.question, { kind: "decoder", layer, head, changes: on ? "" : UNMASK })}
    text=${html`<p>The decoder writes the translation from left to right. While it learns, it is shown the whole right translation at once, which is what makes training
      quick; so each position must be kept from seeing the words that it is about to say. The mask does that: scores of later positions become −∞, and
      softmax makes 0 of them. All that is right of the diagonal is empty.</p>
      <p>Switch the mask off and later tokens become visible. This model was never trained so: it does not know what to do with them, and what it says of its own
      translation changes. The log-probability is the logarithm of the chance that the model gives to exactly this translation; nearer to 0 is more.</p>`}>
    <div class="controls">
      <button type="button" class="switch" role="switch" aria-checked=${on ? "true" : "false"} onClick=${() => setOn(!on)}>Mask ${on ? "on" : "off"}</button>
      <${Choice} label="Decoder layer" value=${layer} count=${seen.decoder_layers} onChoose=${(chosen) => setPlace({ layer: chosen, head })} />
      <${Choice} label="Head" value=${head} count=${seen.num_heads} onChoose=${(chosen) => setPlace({ layer, head: chosen })} />
    </div>
    ${fits && html`<${AttentionTable} caption=${`Decoder self-attention, mask ${on ? "on" : "off"}`} rows=${seen.fed} columns=${seen.fed} weight=${(row, column) => value.row(head, row)[column]} />`}
    ${both && html`<p class="measures">log-probability of “${seen.translation}”: with the mask <b data-shown="masked">${minus(both.log_probability_before)}</b>, without
        ${" "}<b data-shown="unmasked">${minus(both.log_probability_after)}</b></p>
      <div class="scroll" role="region" tabindex="0" aria-label="Token by token"><table class="by-token">
        <thead><tr><th scope="col">token</th><th scope="col" class="number">with the mask</th><th scope="col" class="number">without</th></tr></thead>
        <tbody>${seen.produced.map((token, at) => html`<tr key=${at}><th scope="row">${shownToken(token)}</th>
          <td class="number">${minus(both.before[at])}</td><td class="number">${minus(both.after[at])}</td></tr>`)}</tbody>
      </table></div>`}
    ${outcome.problem && html`<p class="problem" role="alert">${outcome.problem}</p>`}
  </${Lesson}>`;
}
