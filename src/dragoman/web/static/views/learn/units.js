// What a lesson shows one of: a word, which may be of several pieces, or a piece. Attention is by pieces; between words
// it is what goes to all pieces of a word, as a mean over the pieces that look.

import { shownToken } from "../inside/state.js";

// units: [{text, tokens, main}]: the rows that belong to it, and the longest piece of them, which stands for it where
// something has one vector only.
export function unitsOf(seen, by) {
  const start = seen.fed.length - seen.tokens.length; // how many tokens the decoder is given before the first
  const made = (tokens, words, offset) => (by === "pieces" ? tokens.map((token, at) => unit(tokens, [at], shownToken(token))) : grouped(tokens, words, offset));
  return {
    source: made(seen.source, seen.source_words, 0),
    fed: made(seen.fed, seen.target_words, start),
    produced: made(seen.produced, seen.target_words, start - 1),
  };
}

function grouped(tokens, words, offset) {
  const found = [];
  let at = 0;
  for (const { text, first_token: first, last_token: last } of words) {
    for (; at < first + offset; at += 1) found.push(unit(tokens, [at], shownToken(tokens[at])));
    const own = [];
    for (; at <= last + offset; at += 1) own.push(at);
    if (own.length) found.push(unit(tokens, own, text));
  }
  for (; at < tokens.length; at += 1) found.push(unit(tokens, [at], shownToken(tokens[at])));
  return found;
}

function unit(tokens, own, text) {
  const size = (at) => tokens[at].replace("▁", "").replace(/^<.*>$/, "").length;
  return { text, tokens: own, main: own.reduce((best, at) => (size(at) > size(best) ? at : best)) };
}

// Weights between units, from those between tokens: `row(token)` is a list, one number a token.
export function weightsOf(row, looking, lookedAt) {
  const rows = looking.tokens.map(row);
  return lookedAt.map(({ tokens }) => rows.reduce((sum, one) => sum + tokens.reduce((so, at) => so + one[at], 0), 0) / rows.length);
}

// The score by which a unit gets its weight: of several pieces, the logarithm of their sum as the softmax takes it.
export function scoreOf(scores, { tokens }) {
  const top = Math.max(...tokens.map((at) => scores[at]));
  return top + Math.log(tokens.reduce((sum, at) => sum + Math.exp(scores[at] - top), 0));
}

export const unitAt = (units, token) => Math.max(0, units.findIndex(({ tokens }) => tokens.includes(token)));
