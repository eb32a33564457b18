// The reader's sentence in the loaded model, and the few formulas that the lessons compute themselves.

import { useEffect, useMemo, useState } from "../../vendor/htm-preact.js";
import { ask, inside } from "../../api.js";
import { unpack } from "../../packed.js";

const MACHINE_NUMBERS = 16; // of each vector, in the picture of the whole
const PAUSE = 350; // milliseconds without a key before it is translated

const answer = async (path, question, signal) => (await inside(path, question, signal)).json();
const numbers = async (path, question, signal) => unpack(await (await inside(path, question, signal)).arrayBuffer());

const lesson = async (path, question, signal) => (await ask(`learn/${path}`, question, signal)).json();

export const bleu = (hypothesis, reference, signal) => lesson("bleu", { hypothesis, reference }, signal);
export const neighbours = (question, signal) => answer("/neighbours", question, signal);
export const positions = (question, signal) => numbers("/positions", question, signal);

// A sentence and its translation, in numbers.
export async function lookInto(question, signal) {
  const found = await answer("", question, signal);
  return { ...found, question: { ...question, translation: found.tokens }, ofSentence: { ...question, text: found.sentences[found.sentence] ?? found.text, translation: found.tokens } };
}

let kept = null; // the last sentence, for a reader who comes back: what was there is there at once
const keyOf = (...parts) => JSON.stringify(parts.map((part) => part.trim()));
const alike = (one, other) => one.question.text === other.question.text && one.question.source === other.question.source
  && one.question.target === other.question.target && one.translation === other.translation && one.log_probability === other.log_probability;

// What is seen of a sentence: null until it is there. `ask` fetches more about it, each thing once.
export function useSentence({ text, source, target }) {
  const [seen, setSeen] = useState(() => (kept?.key === keyOf(text, source, target) ? kept.seen : null));
  const [problem, setProblem] = useState(null);
  const [attempt, setAttempt] = useState(0);
  const [working, setWorking] = useState(false);
  useEffect(() => {
    const control = new AbortController();
    setProblem(null);
    setWorking(Boolean(text.trim()));
    if (!text.trim()) {
      setSeen(null);
      return undefined;
    }
    const timer = setTimeout(async () => {
      try {
        const found = await lookInto({ text: text.trim(), source, target }, control.signal);
        if (!seen || !alike(found, seen)) setSeen(found);
        kept = { key: keyOf(text, source, target), seen: found };
      } catch (error) {
        if (control.signal.aborted) return;
        setProblem(error);
        setSeen(null);
      }
      setWorking(false);
    }, seen ? PAUSE : 0);
    return () => { clearTimeout(timer); control.abort(); };
  }, [text, source, target, attempt]);
  const more = useMemo(() => (seen ? onceEach(seen) : null), [seen]);
  return { seen, more, problem, working, retry: () => setAttempt((n) => n + 1) };
}

export function onceEach({ question, ofSentence: own }) {
  const found = new Map();
  const once = (key, work) => {
    if (!found.has(key)) found.set(key, work());
    return found.get(key);
  };
  return {
    // All heads of a sub-layer: `row(head, row)` is a list, one number a column.
    attention: (kind, layer, values = "weights", changes = []) =>
      once(`${kind}.${layer}.${values}.${changes}`, async () => {
        const { header, value } = await numbers("/attention", { ...question, kind, layer, values, changes });
        const [, rows, columns] = header.shape;
        return { ...header, values, changes, row: (head, row) => Array.from({ length: columns }, (_, at) => value((head * rows + row) * columns + at)) };
      }),
    // Where the lessons look into vectors: for one sentence, which is the first.
    // `asked` says what they are of: it is shown until what is asked next is there.
    stream: (asked) => once(`stream.${Object.values(asked)}`, async () => ({ ...(await lesson("stream", { ...own, ...asked })), asked })),
    head: (asked) => once(`head.${Object.values(asked)}`, async () => ({ ...(await lesson("head", { ...own, ...asked })), asked })),
    machine: () => once("machine", () => lesson("machine", { ...own, numbers: MACHINE_NUMBERS })),
    withoutMask: () => once("mask", () => answer("/intervene", { ...question, changes: ["decoder.*:unmask"], retranslate: false })),
  };
}

const NOTHING = { value: null, problem: "" };

// Something that is fetched for a widget; the last that was asked for wins, and what was there stays until then, unless
// it is `of` something else, another sentence for one: the tokens that are shown are not those it has numbers for.
export function useFetched(work, inputs, of = null) {
  const [found, setFound] = useState({ ...NOTHING, of });
  useEffect(() => {
    let wanted = true;
    const promise = work();
    if (!promise) return undefined;
    promise.then(
      (value) => wanted && setFound({ value, problem: "", of }),
      (error) => wanted && setFound({ value: null, problem: error.message, of }),
    );
    return () => { wanted = false; };
  }, inputs);
  return found.of === of ? found : NOTHING;
}

export function softmax(scores) {
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((so, power) => so + power, 0);
  return powers.map((power) => power / sum);
}

// In nats: 0 where one gets all, the logarithm of how many there are where all get the same.
export const entropy = (weights) => weights.reduce((so, weight) => (weight > 0 ? so - weight * Math.log(weight) : so), 0);

export const mean = (rows) => rows[0].map((_, at) => rows.reduce((so, row) => so + row[at], 0) / rows.length);

export const meanOf = (values) => values.reduce((so, value) => so + value, 0) / values.length;
export const spreadOf = (values) => Math.sqrt(meanOf(values.map((value) => (value - meanOf(values)) ** 2)));
export const sizeOf = (values) => Math.sqrt(meanOf(values.map((value) => value * value))); // root of the mean square

// How much more a mean is in doubt than those it is of: their Jensen–Shannon divergence.
export const erased = (rows) => entropy(mean(rows)) - rows.reduce((so, row) => so + entropy(row), 0) / rows.length;

// The so many rows that differ most from one another, as indices: all choices are tried.
export function mostDifferent(rows, count) {
  const wanted = Math.min(count, rows.length);
  let best = { score: -1, chosen: [] };
  const choose = (chosen, from) => {
    if (chosen.length === wanted) {
      const score = erased(chosen.map((at) => rows[at]));
      if (score > best.score) best = { score, chosen };
      return;
    }
    for (let at = from; at <= rows.length - (wanted - chosen.length); at += 1) choose([...chosen, at], at + 1);
  };
  choose([], 0);
  return best.chosen;
}

// Numbers that look like chance and are the same every time: normally distributed, mean 0, variance 1.
export function normals(seed, count) {
  let state = seed >>> 0;
  const uniform = () => { // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return Array.from({ length: count }, () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()));
}
