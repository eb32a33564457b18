// Learn: from words as vectors to the whole encoder-decoder, each step live on the loaded model and one's own sentence.

import { html, useLayoutEffect, useMemo, useState } from "../vendor/htm-preact.js";
import { addressOf, replaceAddress } from "../router.js";
import { exampleOf } from "./examples.js";
import { Failure } from "./failure.js";
import { LESSONS, PARTS } from "./learn/catalogue.js";
import { Segments } from "./learn/lesson.js";
import { useSentence } from "./learn/model.js";
import { usePlace, useUnfoldedPrint } from "./learn/place.js";
import { unitsOf } from "./learn/units.js";
import { needsModel } from "./needs-model.js";
import { chooseLanguages } from "./translate/languages.js";

export const LearnView = needsModel(Learn);

const IDS = LESSONS.map(({ id }) => id);

function Learn({ about, values }) {
  const wanted = chooseLanguages(about, values.from === "auto" ? "" : values.from, values.to);
  const pair = about.pairs.find(({ source, target }) => source === wanted.source && target === wanted.target);
  const [text, setText] = useState(values.text ?? exampleOf(pair.source));
  const [by, setBy] = useState(values.by === "pieces" ? "pieces" : "words");
  const [wish, setWish] = useState(() => spotIn(values)); // the head and the token that several lessons look at
  const { seen, more, problem, working, retry } = useSentence({ text, source: pair.source, target: pair.target });
  const { current, goTo } = usePlace(IDS, values.lesson, Boolean(seen));
  useUnfoldedPrint();
  useLayoutEffect(() => { // the address was changed by hand, or by the browser's way back
    if (values.text !== undefined && values.text !== text) setText(values.text);
    setBy(values.by === "pieces" ? "pieces" : "words");
    setWish(spotIn(values));
  }, [values.text, values.by, values.layer, values.head, values.row]);
  useLayoutEffect(() => {
    if (seen && values.lesson && values.lesson !== current) goTo(values.lesson);
  }, [values.lesson]);
  const address = (lesson) => ({
    from: pair.source, to: pair.target, text, by: by === "pieces" ? by : "", layer: wish.layer || "", head: wish.head || "", row: wish.row ?? "", lesson,
  });
  useLayoutEffect(() => {
    if (seen || !values.lesson) replaceAddress("learn", address(current));
  }, [text, wish, by, pair, current, seen]);
  const units = useMemo(() => seen && unitsOf(seen, by), [seen, by]);
  const spot = seen && {
    layer: Math.min(wish.layer, seen.encoder_layers - 1),
    head: Math.min(wish.head, seen.num_heads - 1),
    row: Math.min(wish.row ?? longestOf(units.source), seen.source.length - 1),
  };
  const shown = LESSONS.find(({ id }) => id === current);
  return html`<div class="learn">
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
      ${seen && seen.sentences.length > 1 && html`<p class="small">The lessons look at the first sentence: ${seen.sentences[0]}</p>`}
      ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
      ${seen && html`<${Contents} address=${address} goTo=${goTo} />`}
    </section>
    ${seen && html`<div class="learn-bar">
      <nav aria-label="Lessons by number"><ol>${LESSONS.map(({ id, number, title }) => html`<li key=${id}><a href=${addressOf("learn", address(id))}
        aria-current=${id === current ? "true" : undefined} title=${typeof title === "string" ? title : "Why divide by √d_k?"} onClick=${() => goTo(id)}>${number}</a></li>`)}</ol></nav>
      <span class="learn-now" aria-hidden="true">${shown?.title}</span>
      <${Segments} label="Show the sentence by" name="by" value=${by} options=${[["words", "Words"], ["pieces", "Pieces"]]} onChoose=${setBy} />
    </div>`}
    ${seen && LESSONS.map(({ View, ...frame }) => html`<${View} key=${frame.id} frame=${frame} seen=${seen} units=${units} by=${by} more=${more} spot=${spot} address=${(id) => addressOf("learn", address(id))} goTo=${goTo}
      onSpot=${(changes) => setWish({ ...spot, ...changes })} />`)}
  </div>`;
}

function Contents({ address, goTo }) {
  return html`<nav class="contents" aria-label="Contents">${PARTS.map(({ name, lessons }) => html`<div key=${name}><h2>${name}</h2>
    <ol>${lessons.map(({ id, title, short }) => html`<li key=${id}><a href=${addressOf("learn", address(id))} onClick=${() => goTo(id)}>
      <span class="number">${IDS.indexOf(id) + 1}</span><span>${short ?? title}</span></a></li>`)}</ol></div>`)}
  </nav>`;
}

// Where nothing is chosen: a long word is likely to mean something.
function longestOf(units) {
  const longest = units.slice(0, -1).reduce((best, one) => (one.text.length > best.text.length ? one : best), units[0]);
  return longest.main;
}

function spotIn(values) {
  const number = (name) => (/^\d+$/.test(values[name] ?? "") ? Number(values[name]) : 0);
  return { layer: number("layer"), head: number("head"), row: values.row ? number("row") : null };
}
