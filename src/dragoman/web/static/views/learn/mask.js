// Shift and mask together: what the decoder is fed, what it must say, what it may see, and what happens without the mask.

import { html, useState } from "../../vendor/htm-preact.js";
import { Found } from "./found.js";
import { Choice, insideAddress, Lesson, minus, Segments, Switch } from "./lesson.js";
import { useFetched } from "./model.js";
import { scoreOf, weightsOf } from "./units.js";

const UNMASK = "decoder.*:unmask";
const SHOWN = [["weights", "Weights"], ["scores", "Scores before the softmax"]];

export function Mask({ frame, seen, units, more }) {
  const [on, setOn] = useState(true);
  const [place, setPlace] = useState({ layer: 0, head: 0 });
  const [shown, setShown] = useState("weights");
  const [asked, setAsked] = useState(null); // the position that is looked at; null: the middle
  const layer = Math.min(place.layer, seen.decoder_layers - 1);
  const head = Math.min(place.head, seen.num_heads - 1);
  const at = Math.min(asked ?? Math.floor(units.fed.length / 2), units.fed.length - 1);
  const { value } = useFetched(() => more.attention("decoder", layer, shown, on ? [] : [UNMASK]), [more, layer, on, shown], more);
  const outcome = useFetched(() => more.withoutMask(), [more], more);
  const fits = value && value.shape[1] === seen.fed.length;
  const both = outcome.value && outcome.value.before.length === seen.produced.length ? outcome.value : null;
  return html`<${Lesson} frame=${frame} equation="mask" wide
    link=${insideAddress(seen.question, { kind: "decoder", layer, head, changes: on ? "" : UNMASK })}
    text=${html`<p>The decoder writes from left to right: at each position it reads what stands before and must say what comes next. So the translation is fed to it <em>shifted</em>: a start symbol
      first, then everything one place later than it must be said. While it learns, the whole right translation is there at once, and all positions learn at the same time.</p>
      <p>That would give the answers away: what position ${at} must say stands one place to its right. The <em>mask</em> hides it. Scores of later positions become −∞
      before the softmax, which makes exactly 0 of them. Shift and mask belong together: shifted without a mask, the answer is in sight; masked but not shifted, each
      position is fed the very word that it must say.</p>
      <p>Switch the mask off. This model was never trained so: it does not know what to do with later tokens, and what it thinks of its own translation changes. The
      log-probability is the logarithm of the chance that the model gives to exactly this translation; nearer to 0 is more.</p>`}>
    <div class="controls">
      <${Switch} on=${on} label=${`Mask ${on ? "on" : "off"}`} onSwitch=${setOn} />
      <${Choice} label="Decoder layer" value=${layer} count=${seen.decoder_layers} onChoose=${(chosen) => setPlace({ layer: chosen, head })} />
      <${Choice} label="Head" value=${head} count=${seen.num_heads} onChoose=${(chosen) => setPlace({ layer, head: chosen })} />
      <${Segments} label="What the cells show" name="mask-shown" value=${shown} options=${SHOWN} onChoose=${setShown} />
    </div>
    <${Shift} units=${units} at=${at} on=${on} onChoose=${setAsked} />
    ${fits && html`<${Cells} value=${value} head=${head} units=${units} on=${!value.changes.length} shown=${value.values} at=${at} onChoose=${setAsked} />`}
    ${both && html`<p class="measures">log-probability of “${seen.translation}”: with the mask <b data-shown="masked">${minus(both.log_probability_before)}</b>, without
        ${" "}<b data-shown="unmasked">${minus(both.log_probability_after)}</b></p>
      <details><summary>Token by token</summary><div class="scroll" role="region" tabindex="0" aria-label="Token by token"><table class="by-token">
        <thead><tr><th scope="col">must say</th><th scope="col" class="number">with the mask</th><th scope="col" class="number">without</th></tr></thead>
        <tbody>${units.produced.map(({ text, tokens }, index) => html`<tr key=${index}><th scope="row">${text}</th>
          <td class="number">${minus(sum(both.before, tokens))}</td><td class="number">${minus(sum(both.after, tokens))}</td></tr>`)}</tbody>
      </table></div></details>`}
    ${outcome.problem && html`<p class="problem" role="alert">${outcome.problem}</p>`}
    <${Found} of="mask" notes />
  </${Lesson}>`;
}

const sum = (values, tokens) => tokens.reduce((so, at) => so + values[at], 0);

// Two rows of words: fed, and to be said, one place apart. The chosen position's sight is marked.
function Shift({ units, at, on, onChoose }) {
  return html`<div class="scroll plain-scroll" role="region" tabindex="0" aria-label="What is fed and what must be said"><table class="shift"><tbody>
    <tr><th scope="row">is fed</th>${units.fed.map(({ text }, index) => html`<td key=${index} class=${index === at ? "here" : index < at || !on ? "sees" : "hidden-cell"}>
      <button type="button" class="quiet" aria-pressed=${index === at ? "true" : "false"} onClick=${() => onChoose(index)}>${text}</button></td>`)}</tr>
    <tr><th scope="row">must say</th>${units.produced.map(({ text }, index) => html`<td key=${index} class=${index === at ? "to-say" : ""}>${text}</td>`)}</tr>
  </tbody></table></div>
  <p class="measures">At “${units.fed[at].text}” it must say <b>${units.produced[Math.min(at, units.produced.length - 1)].text}</b>, and sees${" "}
    <b data-shown="sees">${on ? at + 1 : units.fed.length}</b> of ${units.fed.length}${on ? "" : ", the answer among them"}</p>`;
}

function Cells({ value, head, units, on, shown, at, onChoose }) {
  const cell = (row, column) => (shown === "weights"
    ? weightsOf((token) => value.row(head, token), units.fed[row], units.fed)[column]
    : scoreOf(value.row(head, units.fed[row].tokens[0]), units.fed[column]));
  const all = units.fed.map((_, row) => units.fed.map((__, column) => cell(row, column)));
  const size = shown === "weights" ? 1 : Math.max(...all.flat().map(Math.abs), 1e-9);
  const name = `Decoder self-attention${shown === "scores" ? " scores" : ""}, mask ${on ? "on" : "off"}`;
  return html`<div class="attention masked" role="region" tabindex="0" aria-label=${name}><table>
    <caption class="unseen">${name}</caption>
    <thead><tr><td></td>${units.fed.map(({ text }, index) => html`<th scope="col" key=${index}><span>${text}</span></th>`)}</tr></thead>
    <tbody>${units.fed.map(({ text }, row) => html`<tr key=${row} class=${row === at ? "current" : ""} onClick=${() => onChoose(row)}><th scope="row">${text}</th>
      ${units.fed.map((other, column) => {
        const hidden = on && column > row;
        const own = all[row][column];
        const written = shown === "scores" ? (hidden ? "−∞" : minus(own, 1)) : own.toFixed(2);
        return html`<td key=${column} class=${`${hidden ? "hidden-cell" : ""}${shown === "scores" ? " score" : ""}`} style=${{ "--weight": (hidden ? 0 : shown === "weights" ? own : Math.max(0, own / size)).toFixed(4) }}
          data-weight=${shown === "weights" ? own.toFixed(4) : undefined} title=${`${text} → ${other.text}: ${written}`}>${shown === "scores" ? written : html`<span class="unseen">${written}</span>`}</td>`;
      })}</tr>`)}</tbody>
  </table></div>`;
}
