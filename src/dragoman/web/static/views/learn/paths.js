// How far news has to travel: step by step through a recurrent network, in one step through attention.

import { html, useState } from "../../vendor/htm-preact.js";
import { Found } from "./found.js";
import { Bars, insideAddress, Lesson, Slider } from "./lesson.js";

export function Paths({ frame, seen, units }) {
  const count = units.source.length;
  const [asked, setAsked] = useState(null);
  const to = Math.min(asked ?? count - 1, count - 1);
  const layers = (kind, many) => Array.from({ length: many }, (_, layer) => {
    const heads = seen.heads.filter((head) => head.kind === kind && head.layer === layer);
    return heads.reduce((so, head) => so + head.distance, 0) / heads.length;
  });
  const encoder = layers("encoder", seen.encoder_layers);
  const decoder = layers("decoder", seen.decoder_layers);
  const most = Math.max(...encoder, ...decoder, 1);
  const rows = (kind, distances) => distances.map((distance, layer) => ({ name: `${kind} ${layer}`, value: distance }));
  return html`<${Lesson} frame=${frame} equation="path"
    link=${insideAddress(seen.question, { kind: "encoder", layer: 0, statistic: "distance" })}
    text=${html`<p>Before the Transformer, networks read word by word and kept one memory. News of the first word reached the last one only through all between, and some
      was lost at every step. With attention any token looks at any other directly: one step, however long the sentence is. That is also why all positions
      can be computed at the same time.</p>
      <p>Drag to the word that needs to hear of the first one. Below: how far this model really looks in your sentence, as the mean distance in tokens of what
      is attended to, for each layer. If all of a layer’s heads looked evenly at everything, it would be about a third of the length.</p>`}>
    <${Slider} label="To word" value=${to} least=${1} most=${Math.max(1, count - 1)} shown=${`${to}: ${units.source[to].text}`} onMove=${setAsked} />
    <${Drawing} tokens=${units.source} to=${to} />
    <p class="measures">steps: recurrent <b data-shown="recurrent steps">${to}</b>, attention <b data-shown="attention steps">1</b></p>
    <h3>Mean attention distance by layer, in tokens</h3>
    <${Bars} label="Mean attention distance" most=${most} rows=${[...rows("encoder", encoder), ...rows("decoder", decoder)]} />
    <${Found} of="distance" notes />
  </${Lesson}>`;
}

function Drawing({ tokens, to }) {
  const x = (at) => 20 + (360 * at) / Math.max(1, tokens.length - 1);
  const middle = (x(0) + x(to)) / 2;
  return html`<svg class="paths" viewBox="0 0 400 150" role="img" aria-label=${`Through the recurrent network ${to} steps, by attention one`}>
    <path class="curve-1" d=${`M ${x(0)} 62 Q ${middle} ${62 - 24 - (90 * to) / tokens.length} ${x(to)} 62`} />
    ${tokens.slice(0, to).map((_, at) => html`<path key=${at} class="curve-2" d=${`M ${x(at)} 88 Q ${(x(at) + x(at + 1)) / 2} 108 ${x(at + 1)} 88`} />`)}
    ${tokens.map((token, at) => html`<circle key=${at} class=${at === 0 || at === to ? "end" : at < to ? "between" : ""} cx=${x(at)} cy="75" r="6"><title>${token.text}</title></circle>`)}
    <text x="20" y="14" class="curve-1">attention: 1</text><text x="20" y="140" class="curve-2">recurrent: ${to}</text>
  </svg>`;
}
