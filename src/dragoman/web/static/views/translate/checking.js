// Every sentence is explained, one after another: however long a text is, one question is under way. Those that someone
// looks at come first, and what is known already is not asked again.

import * as api from "../../api.js";

const MOST_KEPT = 500; // explanations
const FIRST_WAIT = 2; // seconds, when the service is not there
const LONGEST_WAIT = 30;

const known = new Map(); // question: its explanation
const nameOf = (question) => JSON.stringify([question.source, question.target, question.text, question.translation, question.translation_text]);

export const knownExplanation = (question) => known.get(nameOf(question)) ?? null;

// The explanation; null where there is none to be had. A service that is busy or away is waited for.
export async function explained(question, signal) {
  for (let wait = FIRST_WAIT; !known.has(nameOf(question)); wait = Math.min(LONGEST_WAIT, 2 * wait)) {
    try {
      keep(nameOf(question), await api.explain(question, signal));
    } catch (error) {
      if (signal.aborted) throw error;
      if (error.status === 500 || !api.isPassing(error)) return null; // the translation stands without it
      await new Promise((resolve) => setTimeout(resolve, 1000 * (error.retryAfter || wait)));
      signal.throwIfAborted();
    }
  }
  return known.get(nameOf(question));
}

function keep(name, explanation) {
  if (known.size >= MOST_KEPT) known.delete(known.keys().next().value);
  known.set(name, explanation);
}

// Does `work` for one item after another. Items have an `index` and the `signal` of the text they belong to.
export function inTurn(work) {
  let waiting = [];
  let busy = false;
  const go = async () => {
    if (busy) return;
    busy = true;
    while (waiting.length) {
      const item = waiting.shift();
      if (!item.signal.aborted) await work(item).catch((error) => { if (!item.signal.aborted) throw error; });
    }
    busy = false;
  };
  return {
    later: (items) => { waiting.push(...items); go(); },
    next: (item) => {
      waiting = [item, ...waiting.filter((one) => one.index !== item.index || one.signal !== item.signal)];
      go();
    },
  };
}
