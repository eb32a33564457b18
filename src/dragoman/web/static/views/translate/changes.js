// What a person makes of a translation: words typed, chosen or taken whole. Every change can be taken back.

import { useCallback, useRef } from "../../vendor/htm-preact.js";

const BURST = 1500; // milliseconds between two keys that are taken back together
const MOST_STEPS = 200;

// A sentence as the service translated it.
export const plainly = ({ candidates: [{ text, tokens }] }) => ({ text, tokens, prefix: [], explanation: null, changed: false, edited: false });

// What of a sentence a person may change.
const ownOf = ({ text, tokens, prefix, explanation, changed, edited }) => ({ text, tokens, prefix, explanation, changed, edited });

export function useChanges(segments, setSegments) {
  const newest = useRef(segments);
  newest.current = segments;
  const steps = useRef([]);

  const put = (index, values) => {
    newest.current = newest.current.map((one, at) => (at === index ? { ...one, ...values } : one));
    setSegments(newest.current);
  };
  const change = (index, values, isTyped = false) => {
    const segment = newest.current[index];
    const last = steps.current.at(-1);
    const now = performance.now();
    if (isTyped && last?.isTyped && last.source === segment.source && last.start === segment.start && now - last.at < BURST) last.at = now;
    else steps.current = [...steps.current, { source: segment.source, start: segment.start, isTyped, at: now, values: ownOf(segment) }].slice(-MOST_STEPS);
    put(index, { ...values, touched: true });
  };

  // Answers that come later: only if it is still the same sentence that stands there, as it was.
  const amend = useCallback((index, before, values) => {
    const now = newest.current[index];
    if (now?.source === before.source && now.start === before.start && now.text === before.text) put(index, values);
  }, []);
  const type = useCallback((index, words) => {
    const own = plainly(newest.current[index]);
    change(index, words === own.text ? own : { ...own, text: words, tokens: null, changed: true, edited: true }, true);
  }, []);
  const choose = useCallback((index, explanation, prefix) => {
    const { target: text, tokens } = explanation;
    change(index, { explanation, text, tokens, prefix, changed: true, edited: false });
  }, []);
  const take = useCallback((index, { text, tokens }) => change(index, { text, tokens, prefix: tokens ?? [], explanation: null, changed: true, edited: !tokens }), []);
  // Takes the last change of a sentence that is still there back; the sentence it was, -1: there is none.
  const placeOf = ({ source, start }) => {
    const exact = newest.current.findIndex((one) => one.source === source && one.start === start);
    return exact >= 0 ? exact : newest.current.findIndex((one) => one.source === source);
  };
  const undo = useCallback(() => {
    const last = steps.current.findLastIndex((step) => placeOf(step) >= 0);
    if (last < 0) return -1;
    const [step] = steps.current.splice(last, 1);
    const index = placeOf(step);
    put(index, { ...step.values, touched: true });
    return index;
  }, []);
  const undoable = steps.current.some((step) => placeOf(step) >= 0);
  return { type, choose, take, undo, amend, undoable };
}
