// The lessons in their order, with the parts that they make.

import { html } from "../../vendor/htm-preact.js";
import { Block } from "./block.js";
import { Bleu } from "./bleu.js";
import { Costs } from "./costs.js";
import { Embeddings } from "./embeddings.js";
import { Heads } from "./heads.js";
import { Machine } from "./machine.js";
import { Mask } from "./mask.js";
import { Notation } from "./notation.js";
import { Paths } from "./paths.js";
import { Positions } from "./positions.js";
import { Pronoun } from "./pronoun.js";
import { Query } from "./query.js";
import { Questions } from "./questions.js";
import { Reading } from "./reading.js";
import { Scale } from "./scale.js";
import { Vectors } from "./vectors.js";

const DK = html`<span class="symbol">d<sub>k</sub></span>`;

export const PARTS = [
  { name: "The whole", lessons: [
    { id: "machine", title: "The living machine", View: Machine },
  ] },
  { name: "Attention", lessons: [
    { id: "vectors", title: "Words are vectors", View: Embeddings },
    { id: "positions", title: "Where a word stands", View: Positions },
    { id: "query", title: "A word asks, the others answer", short: "Query and answer", View: Query },
    { id: "qkv", title: "Query, key and value, number by number", short: "Q, K and V as vectors", View: Vectors },
    { id: "scale", title: html`Why divide by √${DK}?`, View: Scale },
    { id: "heads", title: "Several heads see several things", short: "Several heads", View: Heads },
  ] },
  { name: "The machine around it", lessons: [
    { id: "block", title: "The rest of the block", View: Block },
    { id: "mask", title: "Shifted, and no looking ahead", short: "Shift and mask", View: Mask },
    { id: "pronoun", title: "What does “it” look at?", short: "What “it” looks at", View: Pronoun },
  ] },
  { name: "What came of it", lessons: [
    { id: "paths", title: "Every word is one step away", short: "One step away", View: Paths },
    { id: "costs", title: "Why it won: the paper’s Table 1", short: "Why it won: Table 1", View: Costs },
    { id: "bleu", title: "What BLEU measures", View: Bleu },
  ] },
  { name: "To look up", lessons: [
    { id: "questions", title: "Questions that readers still have", short: "Questions", View: Questions },
    { id: "notation", title: "What each symbol means", short: "Symbols", View: Notation },
    { id: "reading", title: "Where to read on", short: "Reading on", View: Reading },
  ] },
];

export const LESSONS = PARTS.flatMap(({ lessons }) => lessons).map((lesson, at) => ({ ...lesson, number: at + 1 }));
