// Query, key and value of one head as vectors: products, their sum, the weights, and the mixture of the values.

import { html, useState } from "../../vendor/htm-preact.js";
import { Choice, insideAddress, Lesson, minus, Segments, strongest, Strip, TokenRow } from "./lesson.js";
import { useFetched } from "./model.js";
import { unitAt } from "./units.js";

const KINDS = [["encoder", "Encoder"], ["cross", "Decoder to source"]];

export function Vectors({ frame, seen, units, more, spot, onSpot }) {
  const [kind, setKind] = useState("encoder");
  const [asked, setAsked] = useState(null); // the column whose key is set beside the query; null: the one that gets most
  const [wrote, setWrote] = useState(null); // where the decoder looks from
  const layer = Math.min(spot.layer, (kind === "encoder" ? seen.encoder_layers : seen.decoder_layers) - 1);
  const rows = kind === "encoder" ? units.source : units.fed;
  const at = kind === "encoder" ? unitAt(rows, spot.row) : Math.min(wrote ?? rows.length - 1, rows.length - 1);
  const row = rows[at].main;
  const { value: found, problem } = useFetched(() => more.head({ kind, layer, head: spot.head, row }), [more, kind, layer, spot.head, row], more);
  const fits = found && found.keys.length === seen.source.length;
  const columns = units.source;
  const likeliest = fits ? columns.reduce((best, unit, index) => (found.weights[unit.main] > found.weights[columns[best].main] ? index : best), 0) : 0;
  const chosen = Math.min(asked ?? likeliest, columns.length - 1);
  const pick = (index) => { setAsked(null); if (kind === "encoder") onSpot({ row: units.source[index].main }); else setWrote(index); };
  return html`<${Lesson} frame=${frame} wide
    link=${insideAddress(seen.question, { kind, layer, head: spot.head, row })}
    text=${html`<p>Nothing in the lesson before was a figure of speech. Each token’s vector of ${seen.d_model} numbers is multiplied by three matrices that the head has learned,
      and out come three short vectors of ${seen.d_k} numbers: its query, its key and its value. Here they are, blue above 0 and amber below, the stronger the further from it.</p>
      <p>Query and key are multiplied number by number, and the products added up: much blue, a large score. √${seen.d_k} divides it, softmax makes weights
      of all scores, and the values are mixed by them. The result is what this head hands on. With cross-attention nothing changes but whose keys and values they are.</p>`}>
    <div class="controls">
      <${Segments} label="Which attention" name="qkv-kind" value=${kind} options=${KINDS} onChoose=${(one) => { setKind(one); setAsked(null); }} />
      <${Choice} label="Layer" value=${layer} count=${kind === "encoder" ? seen.encoder_layers : seen.decoder_layers} onChoose=${(one) => onSpot({ layer: one })} />
      <${Choice} label="Head" value=${spot.head} count=${seen.num_heads} onChoose=${(head) => onSpot({ head })} />
    </div>
    <${TokenRow} label="Whose query" units=${rows} chosen=${at} onChoose=${pick} />
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${fits && html`<${Products} found=${found} asking=${unitOf(found.asked, units)} answering=${columns[chosen]} />
      <${Mixture} found=${found} columns=${columns} chosen=${chosen} onChoose=${setAsked} />`}
  </${Lesson}>`;
}

const unitOf = ({ kind, row }, { source, fed }) => (kind === "encoder" ? source[unitAt(source, row)] : fed[unitAt(fed, row)]);

function Products({ found, asking, answering }) {
  const key = found.keys[answering.main];
  const products = found.query.map((value, at) => value * key[at]);
  const sum = products.reduce((so, value) => so + value, 0);
  const most = strongest([found.query, key]);
  return html`<div class="products">
    <p>query of <b>${asking.text}</b></p><${Strip} values=${found.query} most=${most} label=${`Query of ${asking.text}`} />
    <p>times key of <b>${answering.text}</b></p><${Strip} values=${key} most=${most} label=${`Key of ${answering.text}`} />
    <p>gives products</p><${Strip} values=${products} label=${`Products of ${asking.text} and ${answering.text}`} />
    <p>in all</p><p class="number-line"><b data-shown="qkv sum">${minus(sum)}</b> × ${found.scale.toFixed(4)} = score <b data-shown="qkv score">${minus(sum * found.scale)}</b></p>
  </div>`;
}

function Mixture({ found, columns, chosen, onChoose }) {
  const keys = strongest(found.keys);
  const values = strongest(found.values);
  const heaviest = Math.max(...found.weights);
  return html`<div class="scroll plain-scroll" role="region" tabindex="0" aria-label="Keys, scores, weights and values"><table class="mixture">
    <thead><tr><td></td><th scope="col">key</th><th scope="col" class="number">score</th><th scope="col" class="number">weight</th><th scope="col">value, as strong as its weight</th></tr></thead>
    <tbody>${columns.map((unit, index) => {
      const weight = found.weights[unit.main];
      return html`<tr key=${index} class=${index === chosen ? "marked" : ""}>
        <th scope="row"><button type="button" class="quiet" aria-pressed=${index === chosen ? "true" : "false"} onClick=${() => onChoose(index)}>${unit.text}</button></th>
        <td><${Strip} values=${found.keys[unit.main]} most=${keys} label=${`Key of ${unit.text}`} /></td>
        <td class="number">${minus(found.scores[unit.main], 2)}</td>
        <td class="number weight-cell" style=${{ "--weight": weight.toFixed(4) }} data-value=${weight}>${weight.toFixed(3)}</td>
        <td><${Strip} values=${found.values[unit.main]} most=${values} share=${0.06 + (0.94 * weight) / heaviest} label=${`Value of ${unit.text}`} /></td></tr>`;
    })}</tbody>
    <tfoot><tr><th scope="row" colspan="4">the values, mixed by their weights: what the head hands on</th>
      <td><${Strip} values=${found.context} most=${values} label="What the head hands on" /></td></tr></tfoot>
  </table></div>`;
}
