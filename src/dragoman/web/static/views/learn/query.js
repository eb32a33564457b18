// One token asks, the others answer: scores, and the softmax that makes weights of them.

import { html } from "../../vendor/htm-preact.js";
import { Bars, Choice, insideAddress, Lesson, minus, TokenRow } from "./lesson.js";
import { entropy, useFetched } from "./model.js";
import { scoreOf, unitAt, weightsOf } from "./units.js";

export function Query({ frame, seen, units, by, more, spot, onSpot }) {
  const both = useFetched(
    () => Promise.all([more.attention("encoder", spot.layer), more.attention("encoder", spot.layer, "scores")]), [more, spot.layer], more,
  );
  const at = unitAt(units.source, spot.row);
  const asking = units.source[at];
  const [all, raw] = both.value ?? [];
  const fits = all && all.shape[1] === seen.source.length;
  const weights = fits ? weightsOf((row) => all.row(spot.head, row), asking, units.source) : null;
  const scores = fits ? units.source.map((unit) => scoreOf(raw.row(spot.head, asking.tokens[0]), unit)) : null;
  const choose = (index) => onSpot({ row: units.source[index].main });
  return html`<${Lesson} frame=${frame} equation="attention"
    link=${insideAddress(seen.question, { kind: "encoder", ...spot })}
    text=${html`<p>What a word means depends on the others. So every token asks a question, its <em>query</em>: a vector computed from its own. Every token
      also holds up a <em>key</em>, which says what it has to offer, and a <em>value</em>, which is what one gets from it.</p>
      <p>Query times key is a score: large where both point the same way. Softmax turns the scores into weights, all positive and 1 in all. The
      token then takes that mixture of the values. Choose what asks; the more colour another one has, the more it gets.</p>
      <p>Nothing here is fixed: another sentence gives other weights. The layers and heads differ, too.</p>`}>
    <div class="controls"><${Choice} label="Encoder layer" value=${spot.layer} count=${seen.encoder_layers} onChoose=${(layer) => onSpot({ layer })} />
      <${Choice} label="Head" value=${spot.head} count=${seen.num_heads} onChoose=${(head) => onSpot({ head })} /></div>
    <${TokenRow} label="What asks" units=${units.source} chosen=${at} weights=${weights} onChoose=${choose} />
    ${both.problem && html`<p class="problem" role="alert">${both.problem}</p>`}
    ${weights && html`<p class="measures"><b>${asking.text}</b> looks at; ${asking.tokens.length === 1 ? "score, " : ""}weight</p>
      <${Bars} label="Weights" rows=${units.source.map((unit, index) => ({ name: unit.text, value: weights[index], also: asking.tokens.length === 1 ? minus(scores[index], 2) : undefined }))} />
      <p class="measures">entropy <b data-shown="query entropy">${entropy(weights).toFixed(3)}</b> of at most ${Math.log(weights.length).toFixed(3)} nats: 0 would be one only</p>
      ${by === "words" && seen.source.length > units.source.length && html`<p class="small">A word of several pieces gets what all of them get, and looks as they do on average. “Pieces”, above, shows them.</p>`}`}
  </${Lesson}>`;
}
