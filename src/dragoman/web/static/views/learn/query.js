// One token asks, the others answer: scores, and the softmax that makes weights of them.

import { html } from "../../vendor/htm-preact.js";
import { shownToken } from "../inside/state.js";
import { Bars, Choice, insideAddress, Lesson, TokenRow } from "./lesson.js";
import { entropy, useFetched } from "./model.js";

export function Query({ number, seen, more, spot, onSpot }) {
  const both = useFetched(
    () => Promise.all([more.attention("encoder", spot.layer), more.attention("encoder", spot.layer, "scores")]), [more, spot.layer], more,
  );
  const [weights, scores] = (both.value ?? []).map((values) => values.row(spot.head, spot.row));
  return html`<${Lesson} number=${number} id="query" title="A word asks, the others answer" equation="attention"
    link=${insideAddress(seen.question, { kind: "encoder", ...spot })}
    text=${html`<p>What a word means depends on the others. So every token asks a question, its <em>query</em>: a vector computed from its own. Every token
      also holds up a <em>key</em>, which says what it has to offer, and a <em>value</em>, which is what one gets from it.</p>
      <p>Query times key is a score: large where both point the same way. Softmax turns the scores into weights, all positive and 1 in all. The
      token then takes that mixture of the values. Choose the token that asks; the more colour another one has, the more it gets.</p>
      <p>Nothing here is fixed: another sentence gives other weights. The layers and heads differ, too.</p>`}>
    <div class="controls"><${Choice} label="Encoder layer" value=${spot.layer} count=${seen.encoder_layers} onChoose=${(layer) => onSpot({ layer })} />
      <${Choice} label="Head" value=${spot.head} count=${seen.num_heads} onChoose=${(head) => onSpot({ head })} /></div>
    <${TokenRow} label="The token that asks" tokens=${seen.source} chosen=${spot.row} weights=${weights} onChoose=${(row) => onSpot({ row })} />
    ${both.problem && html`<p class="problem" role="alert">${both.problem}</p>`}
    ${weights && weights.length === seen.source.length && html`<p class="measures"><b>${shownToken(seen.source[spot.row])}</b> looks at; score, weight</p>
      <${Bars} label="Weights" rows=${seen.source.map((token, at) => ({ name: shownToken(token), value: weights[at], also: scores[at].toFixed(2).replace("-", "−") }))} />
      <p class="measures">entropy <b data-shown="query entropy">${entropy(weights).toFixed(3)}</b> of at most ${Math.log(weights.length).toFixed(3)} nats: 0 would be one token only</p>`}
  </${Lesson}>`;
}
