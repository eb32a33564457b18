// Learn: from words as vectors to the whole encoder-decoder, each step live on the loaded model and one's own sentence.

import { html, useLayoutEffect, useState } from "../vendor/htm-preact.js";
import { addressOf, replaceAddress } from "../router.js";
import { exampleOf } from "./examples.js";
import { Failure } from "./failure.js";
import { Embeddings } from "./learn/embeddings.js";
import { Heads } from "./learn/heads.js";
import { Mask } from "./learn/mask.js";
import { useSentence } from "./learn/model.js";
import { Paths } from "./learn/paths.js";
import { Positions } from "./learn/positions.js";
import { Query } from "./learn/query.js";
import { Scale } from "./learn/scale.js";
import { Whole } from "./learn/whole.js";
import { needsModel } from "./needs-model.js";
import { chooseLanguages } from "./translate/languages.js";

export const LearnView = needsModel(Learn);

const LESSONS = [Embeddings, Positions, Query, Scale, Heads, Paths, Mask, Whole];

function Learn({ about, values }) {
  const wanted = chooseLanguages(about, values.from === "auto" ? "" : values.from, values.to);
  const pair = about.pairs.find(({ source, target }) => source === wanted.source && target === wanted.target);
  const [text, setText] = useState(values.text ?? exampleOf(pair.source));
  const [wish, setWish] = useState(() => spotIn(values)); // the head and the token that several lessons look at
  const { seen, more, problem, working, retry } = useSentence({ text, source: pair.source, target: pair.target });
  useLayoutEffect(() => { // the address was changed by hand, or by the browser's way back
    if (values.text !== undefined && values.text !== text) setText(values.text);
    setWish(spotIn(values));
  }, [values.text, values.layer, values.head, values.row]);
  useLayoutEffect(() => {
    replaceAddress("learn", { from: pair.source, to: pair.target, text, layer: wish.layer || "", head: wish.head || "", row: wish.row ?? "" });
  }, [text, wish, pair]);
  const spot = seen && {
    layer: Math.min(wish.layer, seen.encoder_layers - 1),
    head: Math.min(wish.head, seen.num_heads - 1),
    row: Math.min(wish.row ?? longestOf(seen.source), seen.source.length - 1),
  };
  return html`
    <section class="sheet study learn-head" aria-label="The sentence">
      <h1>How a Transformer translates</h1>
      <p>Everything on this page is computed by the model that runs here, on a sentence of yours. Nothing is drawn by hand: change the sentence
        and all of it changes.</p>
      <div class="sentence-row">
        <label class="field">Your sentence <input type="text" dir="auto" lang=${pair.source} maxlength="200" spellcheck=${false} value=${text}
          placeholder="Type one sentence" onInput=${(event) => setText(event.target.value)} /></label>
        ${about.pairs.length > 1 && html`<label class="run-choice">Languages <select value=${`${pair.source} ${pair.target}`}
          onChange=${(event) => { const [from, to] = event.target.value.split(" "); location.hash = addressOf("learn", { from, to, text: from === pair.source ? text : exampleOf(from) }); }}>
          ${about.pairs.map((one) => html`<option key=${`${one.source}${one.target}`} value=${`${one.source} ${one.target}`}>${one.source_name} to ${one.target_name}</option>`)}
        </select></label>`}
      </div>
      <p class="translated" dir="auto" lang=${pair.target} aria-live="polite" aria-busy=${working ? "true" : "false"}>${seen ? seen.translation || "(nothing)" : working ? "…" : ""}</p>
      ${seen && seen.sentences.length > 1 && html`<p class="note">The lessons look at the first sentence: ${seen.sentences[0]}</p>`}
      ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
    </section>
    ${seen && LESSONS.map((One, at) => html`<${One} key=${One.name} number=${at + 1} seen=${seen} more=${more} spot=${spot}
      onSpot=${(changes) => setWish({ ...spot, ...changes })} />`)}
  `;
}

// Where nothing is chosen: a long token is likely to mean something.
function longestOf(tokens) {
  const sizes = tokens.slice(0, -1).map((token) => token.length);
  return sizes.indexOf(Math.max(...sizes));
}

function spotIn(values) {
  const number = (name) => (/^\d+$/.test(values[name] ?? "") ? Number(values[name]) : 0);
  return { layer: number("layer"), head: number("head"), row: values.row ? number("row") : null };
}
