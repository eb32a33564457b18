// Questions that readers still have, answered with this model's numbers, the lab's findings, and lessons to look at.

import { html } from "../../vendor/htm-preact.js";
import { Findings } from "./found.js";
import { Lesson } from "./lesson.js";

const SURE = [
  ["Training goes in parallel over positions", "Certain as arithmetic: nothing in Table 1 waits. What it gains depends on the machine.", "distance"],
  ["It is better than recurrent networks", "At the paper’s size its scores show it. The lab asks at its own size.", "rnn"],
  ["Division by √d_k keeps the softmax alive", "The variance is arithmetic. How much it matters depends on d_k.", "scaling"],
  ["Heads are distinct subspaces with roles", "The least sure: roles are tendencies, and heads can be removed.", "prune"],
  ["Several heads beat one", "The paper says 0.9 BLEU. It depends on how the model is made.", "heads"],
  ["Residuals let a stack of layers learn", "Whatever a sub-layer does, what was there goes on beside it, and gradients the same way back.", "residual"],
  ["It parses as well as it translates", "Table 4; parse here with “dragoman parse train”. The lab has not set it beside other architectures.", null],
];

export function Questions({ frame, seen, goTo }) {
  const to = (lesson, text) => html`<button type="button" class="quiet to-lesson" onClick=${() => goTo(lesson)}>${text}</button>`;
  return html`<${Lesson} frame=${frame} wide text=${html`<p>Each is answered as far as it is known, and where the lab has measured it, in the lab’s words.</p>`}>
    <${Question} id="q-number" asks="Why not feed the position as one number?">
      <p>One number would have to be large for late words, and then drown what the word means, or be divided by the length, and then the step from one word to the next would be another in every
        sentence. A vector of clocks has small numbers only, and the same step everywhere: ${to("positions", "Where a word stands")}. The lab tried one number (“index”):</p>
      <${Findings} of="positions" />
    </${Question}>
    <${Question} id="q-root" asks="Why √d_k and not d_k?">
      <p>A score is a sum of d_k products that are as often below 0 as above. Such sums do not grow with how many there are but with the root of it: the variance is d_k, the size √d_k. Division by
        d_k shrinks scores to nothing, and then all words get the same: ${to("scale", "drag d_k")}. Here d_k is ${seen.d_k}.</p>
      <${Findings} of="scaling" />
    </${Question}>
    <${Question} id="q-gpt" asks="Is it the same thing as GPT?">
      <p>GPT is the right half of the machine: masked self-attention and feed-forward, without an encoder and so without cross-attention. Text to be continued stands where the translation stands
        here. A translation can be written so too, as a continuation of its source; an encoder-decoder reads the source both ways first. BERT is the left half alone. Dragoman trains both halves with
        the same code.</p>
    </${Question}>
    <${Question} id="q-roles" asks="Do heads specialise, as figures show?">
      <p>Some do, somewhat. Figures show the heads that were chosen for a figure. In ${to("pronoun", "What does “it” look at?")} you see all heads of this model for one famous sentence, and in Inside every head with
        what happens when it is switched off.</p>
      <${Findings} of="prune" />
    </${Question}>
    <${Question} id="q-decoder" asks="How does the decoder work, step by step?">
      <p>Watch ${to("machine", "the living machine")}: the last word goes in, looks at those before it, then at the encoder’s vectors, is worked on alone, and out comes a probability for every piece of the vocabulary. The
        chosen one goes in next. While it learns nothing is chosen: the right words are fed, ${to("mask", "shifted and masked")}, and all positions are done at once. What it chooses here is not always the likeliest piece: a
        beam search keeps several beginnings at a time (“How it decided”, in Translate).</p>
    </${Question}>
    <${Question} id="q-symbols" asks="What does each symbol mean?">
      <p>They stand together in ${to("notation", "a table of notation")}, with what they are here.</p>
    </${Question}>
    <${Question} id="q-sure" asks="How sure is each claim?">
      <p>Each with what the lab found, effect and spread as measured there. It says nothing of other sizes.</p>
      <dl class="sure">${SURE.map(([claim, said, of]) => html`<dt key=${claim}>${claim}</dt><dd>${said}${of && html`<${Findings} of=${of} />`}</dd>`)}</dl>
    </${Question}>
    <${Question} id="q-reading" asks="Where can I read on?"><p>${to("reading", "A list")}, with a word on what each is about.</p></${Question}>
  </${Lesson}>`;
}

function Question({ id, asks, children }) {
  return html`<details class="question" id=${id}><summary><h3>${asks}</h3></summary>${children}</details>`;
}
