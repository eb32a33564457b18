// The rest of the block: the residual stream, what each sub-layer writes into it, normalisation, the feed-forward layer.

import { html, useState } from "../../vendor/htm-preact.js";
import { Found } from "./found.js";
import { Lesson, minus, Segments, strongest, Strip, TokenRow } from "./lesson.js";
import { meanOf, sizeOf, spreadOf, useFetched } from "./model.js";
import { unitAt } from "./units.js";

const ORDERS = [["pre", "Normalise before"], ["post", "Normalise after"]];
const STACKS = [["encoder", "Encoder"], ["decoder", "Decoder"]];

export function Block({ frame, seen, units, more, spot, onSpot }) {
  const [stack, setStack] = useState("encoder");
  const [order, setOrder] = useState(null); // null: as the run has it
  const [asked, setAsked] = useState(1); // the sub-layer that is taken apart
  const [wrote, setWrote] = useState(null);
  const rows = stack === "encoder" ? units.source : units.fed;
  const at = stack === "encoder" ? unitAt(rows, spot.row) : Math.min(wrote ?? rows.length - 1, rows.length - 1);
  const row = rows[at].main;
  const { value: found, problem } = useFetched(() => more.stream({ stack, row, order }), [more, stack, row, order], more);
  const plain = useFetched(() => more.stream({ stack, row, order: null }), [more, stack, row], more).value;
  const chosen = found ? Math.min(asked, found.sublayers.length - 1) : 0; // of the half that is there
  const pick = (index) => (stack === "encoder" ? onSpot({ row: units.source[index].main }) : setWrote(index));
  return html`<${Lesson} frame=${frame} equation="sublayer" wide
    text=${html`<p>Attention is only a part of a layer. Around it runs the <em>residual stream</em>: one vector for each token, of ${seen.d_model} numbers from the embedding to the
      end. A sub-layer reads it and writes a correction, which is added. What was there stays, unless something is written against it; and the way back is clear
      for gradients.</p>
      <p>After attention has fetched something from other tokens, the <em>feed-forward layer</em> works on each token alone: a wide layer of switches, each on or off for this token, and back
      to ${seen.d_model} numbers. <em>Normalisation</em> brings a vector’s numbers to mean 0 and spread 1, then stretches each by a factor that was learned. The paper normalises the
      sum, after each sub-layer; most models since then what a sub-layer reads, and leave the stream itself alone.</p>`}>
    <div class="controls">
      <${Segments} label="Which half" name="block-stack" value=${stack} options=${STACKS} onChoose=${(one) => { setStack(one); setAsked(1); }} />
      <${Segments} label="Order" name="block-order" value=${found?.order ?? order ?? ""} options=${ORDERS} onChoose=${(one) => setOrder(one)} />
    </div>
    <${TokenRow} label="Whose vector" units=${rows} chosen=${at} onChoose=${pick} />
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${found && plain && html`
      <p class="measures">This run was trained with the normalisation ${found.own_order === "pre" ? "before" : "after"} each sub-layer${found.order === found.own_order
        ? html`: log-probability of the translation <b data-shown="block log-probability">${minus(found.log_probability)}</b>`
        : html`; with the same weights in the other order its translation has log-probability <b data-shown="block log-probability">${minus(found.log_probability)}</b> in place of ${minus(plain.log_probability)}: the
          order is part of what was learned`}</p>
      <div class="block-columns">
        <${Stream} found=${found} chosen=${chosen} onChoose=${setAsked} name=${nameOf(found.asked, units)} />
        <${Detail} found=${found} chosen=${chosen} />
      </div>`}
    <${Found} of="residual" /><${Found} of="norm" notes /><${Found} of="norm-order" />
  </${Lesson}>`;
}

const nameOf = ({ stack, row }, { source, fed }) => (stack === "encoder" ? source[unitAt(source, row)] : fed[unitAt(fed, row)]).text;

function Stream({ found, chosen, onChoose, name }) {
  const streams = [found.embedded, ...found.sublayers.map(({ stream }) => stream)];
  const most = strongest(streams) / 2; // few numbers are the strongest: they may be too strong for the picture
  const longest = Math.max(...streams.map(sizeOf), ...found.sublayers.map(({ written }) => sizeOf(written)));
  return html`<div class="scroll plain-scroll" role="region" tabindex="0" aria-label="The stream, sub-layer by sub-layer"><table class="stream">
    <caption>The stream of <b>${name}</b>, and the size of its numbers</caption>
    <thead><tr><td></td><th scope="col" class="number">written</th><th scope="col">stream</th><th scope="col" class="number">size</th></tr></thead>
    <tbody>
      <tr><th scope="row">embedding + position</th><td></td><td><${Strip} values=${found.embedded} most=${most} label="Stream at the start" /></td>
        <td class="number"><${Size} value=${sizeOf(found.embedded)} of=${longest} /></td></tr>
      ${found.sublayers.map(({ layer, name: kind, written, stream }, at) => html`<tr key=${at} class=${at === chosen ? "marked" : ""}>
        <th scope="row"><button type="button" class="quiet" aria-pressed=${at === chosen ? "true" : "false"} onClick=${() => onChoose(at)}>${layer} ${kind}</button></th>
        <td class="number" data-written=${sizeOf(written).toFixed(4)}>${sizeOf(written).toFixed(2)}</td>
        <td><${Strip} values=${stream} most=${most} label=${`Stream after ${kind} of layer ${layer}`} /></td>
        <td class="number" data-stream=${sizeOf(stream).toFixed(4)}><${Size} value=${sizeOf(stream)} of=${longest} /></td></tr>`)}
    </tbody></table></div>`;
}

const Size = ({ value, of }) => html`<span class="size" style=${{ "--share": (value / of).toFixed(3) }}>${value.toFixed(2)}</span>`;

function Detail({ found, chosen }) {
  const { layer, name, received, written, stream, hidden } = found.sublayers[chosen];
  const before = chosen ? found.sublayers[chosen - 1].stream : found.embedded;
  const summed = before.map((value, at) => value + written[at]);
  const pre = found.order === "pre";
  const [raw, normed] = pre ? [before, received] : [summed, stream];
  const steps = pre
    ? [["stream", before], ["normalised: what it reads", received], ["what it writes", written], ["sum: the stream after it", stream]]
    : [["stream: what it reads", before], ["what it writes", written], ["sum", summed], ["normalised: the stream after it", stream]];
  return html`<div class="detail"><h3>Layer ${layer}, ${name}</h3>
    ${steps.map(([label, values]) => html`<div key=${label}><p class="small">${label}</p><${Strip} values=${values} most=${strongest([values]) / 2} label=${label} /></div>`)}
    <p class="measures">normalisation: mean <b data-shown="mean before">${minus(meanOf(raw), 2)}</b> and spread <b data-shown="spread before">${spreadOf(raw).toFixed(2)}</b> become 0 and 1,
      and after the learned factors ${minus(meanOf(normed), 2)} and ${spreadOf(normed).toFixed(2)}. Each strip’s colours are by its own strongest number</p>
    ${hidden && html`<${Hidden} values=${hidden} width=${received.length} />`}
  </div>`;
}

// One square for each number between the two products of a feed-forward layer.
function Hidden({ values, width }) {
  const on = values.filter((value) => value > 0).length;
  const most = Math.max(...values, 1e-9);
  const across = Math.ceil(Math.sqrt(values.length * 4));
  return html`<p class="small">between its two products: ${values.length} switches, <b data-shown="switches on">${on}</b> of them on</p>
    <svg class="hidden" viewBox=${`0 0 ${across} ${Math.ceil(values.length / across)}`} role="img" aria-label=${`${on} of ${values.length} are above 0`}>
      ${values.map((value, at) => value > 0 && html`<rect key=${at} x=${(at % across) + 0.08} y=${Math.floor(at / across) + 0.08} width="0.84" height="0.84" fill-opacity=${(0.15 + (0.85 * value) / most).toFixed(2)} />`)}
    </svg>
    <p class="measures">weights: <b>${(2 * width * values.length).toLocaleString("en")}</b> here; the four matrices of an attention of this width have <b>${(4 * width * width).toLocaleString("en")}</b></p>`;
}
