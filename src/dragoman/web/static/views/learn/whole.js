// The whole encoder-decoder, writing the translation token by token.

import { html, useState } from "../../vendor/htm-preact.js";
import { shownToken } from "../inside/state.js";
import { percent } from "../translate/words.js";
import { insideAddress, Lesson, Slider } from "./lesson.js";
import { mean, useFetched } from "./model.js";

export function Whole({ number, seen, more }) {
  const [asked, setAsked] = useState(0);
  const last = seen.produced.length - 1;
  const at = Math.min(asked, last);
  const layer = seen.decoder_layers - 1;
  const { value } = useFetched(() => more.attention("cross", layer), [more, layer], more);
  const fits = value && value.shape[1] === seen.fed.length;
  const weights = fits ? mean(Array.from({ length: seen.num_heads }, (_, head) => value.row(head, at))) : null;
  const box = (kind, layers, text) => html`<a class="box" href=${insideAddress(seen.question, { kind, layer: layers - 1, row: kind === "encoder" ? "" : at })}>${text}</a>`;
  return html`<${Lesson} number=${number} id="whole" title="All of it together" equation="whole"
    link=${insideAddress(seen.question, { kind: "cross", layer, row: at })}
    text=${html`<p>The <em>encoder</em> reads: in each of its ${seen.encoder_layers} layers every token looks at all others and then is worked on alone, by a small network that is the same for
      all. What comes out is a vector for each source token that knows its sentence.</p>
      <p>The <em>decoder</em> writes. In each of its ${seen.decoder_layers} layers the tokens written so far look at one another, masked, and then at the encoder’s vectors: <em>cross-attention</em>,
      by which the translation looks at what it translates. At the end stands a probability for every piece of the vocabulary. The chosen one is written, fed
      back, and the decoder goes on until it says “end”.</p>
      <p>Step through your translation. Source tokens have the more colour, the more the last layer’s heads look at them for the next token. The boxes lead to Inside.</p>`}>
    <div class="machine">
      <div class="stack"><h3>Encoder × ${seen.encoder_layers}</h3>
        ${box("encoder", seen.encoder_layers, "self-attention")}<span class="box plain">feed-forward</span></div>
      <div class="stack"><h3>Decoder × ${seen.decoder_layers}</h3>
        ${box("decoder", seen.decoder_layers, "masked self-attention")}${box("cross", seen.decoder_layers, "cross-attention")}<span class="box plain">feed-forward</span></div>
    </div>
    <p class="measures">source</p>
    <div class="tokens" role="group" aria-label="Source">${seen.source.map((token, index) => html`<span key=${index} class="token" style=${{ "--weight": (weights?.[index] ?? 0).toFixed(4) }}
      title=${weights ? percent(weights[index]) : ""}>${shownToken(token)}</span>`)}</div>
    <${Slider} label="Step" value=${at} most=${last} shown=${`${at + 1} of ${last + 1}`} onMove=${setAsked} />
    <p class="written" dir="auto">${seen.fed.slice(1, at + 1).map((token) => html`<span class="said">${shownToken(token)}</span> `)}
      <span class="next">${shownToken(seen.produced[at])}</span></p>
    <p class="measures">next: <b>${shownToken(seen.produced[at])}</b>, probability <b data-shown="next probability">${Math.exp(seen.log_probabilities[at]).toFixed(4)}</b></p>
    <p class="measures">all steps together: log-probability <b data-shown="log-probability">${seen.log_probability.toFixed(3).replace("-", "−")}</b></p>
  </${Lesson}>`;
}
