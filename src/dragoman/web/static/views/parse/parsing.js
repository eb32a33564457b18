// A parse as it comes about: asked for when typing pauses. Only the answer to the newest question is ever shown.

import { useEffect, useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { unpack } from "../../packed.js";

const PAUSE = 250; // milliseconds without a key before it is parsed

export function useParse(limit, { text, constrained, layer }) {
  const [answer, setAnswer] = useState(null);
  const [tied, setTied] = useState(null); // with the constraint, beside an answer without
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState(null);
  const [attempt, setAttempt] = useState(0);
  const asked = useRef(text);

  useEffect(() => {
    setProblem(null);
    setWorking(false);
    if (!text.trim() || text.length > limit) {
      asked.current = text;
      setAnswer(null);
      return undefined;
    }
    const control = new AbortController();
    const timer = setTimeout(() => start(control.signal), asked.current === text ? 0 : PAUSE);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, constrained, layer, attempt]);

  async function start(signal) {
    asked.current = text;
    setWorking(true);
    try {
      const found = await api.parse({ text, constrained, layer }, signal);
      if (signal.aborted) return;
      setTied(null);
      setAnswer({ ...found, attention: unpack(bytes(found.attention)) });
      setWorking(false);
      if (constrained) return;
      const other = await api.parse({ text }, signal);
      if (!signal.aborted) setTied(other);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      setWorking(false);
      setAnswer(null);
      setProblem(error);
      const wait = error.retryAfter || 2;
      if (error.status === 503 || error.status === 429) setTimeout(() => !signal.aborted && setAttempt((n) => n + 1), wait * 1000);
    }
  }

  return { answer, tied, working, problem, retry: () => setAttempt((n) => n + 1) };
}

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;

// What a step looked at, a number a word and one for the end; head -1 is the mean of all heads. The root has no step.
export function weightsOf({ attention: { header, value } }, step, head) {
  if (step === null) return null;
  const [heads, steps, columns] = header.shape;
  const chosen = head >= 0 && head < heads ? [head] : Array.from({ length: heads }, (_, at) => at);
  return Array.from({ length: columns }, (_, column) =>
    chosen.reduce((sum, one) => sum + value((one * steps + step) * columns + column), 0) / chosen.length);
}
