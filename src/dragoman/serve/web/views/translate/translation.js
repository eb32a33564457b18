// A translation as it comes about: asked for when typing pauses, sentence by sentence, explained afterwards.
// Only the answer to the newest question is ever shown: an older one is given up, here and in the service.

import { useCallback, useEffect, useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";

const PAUSE = 250; // milliseconds without a key before it is translated
const EXPLAINED_AT_ONCE = 4; // sentences; later ones when someone looks at them

export function useTranslation(about, text, languages) {
  const [segments, setSegments] = useState([]);
  const [state, setState] = useState("idle"); // idle, working, done, failed
  const [problem, setProblem] = useState(null);
  const [detected, setDetected] = useState(null);
  const [attempt, setAttempt] = useState(0);
  const running = useRef(null);
  const asked = useRef("");
  const source = detected?.source ?? languages.source;

  useEffect(() => {
    running.current?.abort();
    setProblem(null);
    if (!text.trim() || text.length > about.character_limit) {
      setSegments([]);
      setDetected(null);
      setState("idle");
      return undefined;
    }
    const control = new AbortController();
    running.current = control;
    const timer = setTimeout(() => start(control), attempt ? 0 : PAUSE);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, languages, attempt]);

  async function start(control) {
    const question = { text, source: languages.source, target: languages.target };
    const found = [];
    setState("working");
    try {
      const last = await api.translate(question, control.signal, (segment) => {
        found.push({ ...segment, ...chosen(segment.candidates[0]), explanation: null, changed: false });
        if (control.signal.aborted) return;
        asked.current = text; // whose sentences stand there from now on
        setSegments([...found]);
      });
      if (control.signal.aborted) return;
      if (!found.length) setSegments([]);
      setDetected(last.detected && { ...last.detected, source: last.source });
      setState("done");
      setAttempt(0);
      for (let index = 0; index < Math.min(found.length, EXPLAINED_AT_ONCE); index += 1) {
        await explainOne(found[index], index, last.source, control.signal);
      }
    } catch (error) {
      if (error.name === "AbortError" || control.signal.aborted) return;
      setState("failed");
      setProblem(error);
      const wait = error.retryAfter || 2;
      if (error.status === 503 || error.status === 429) setTimeout(() => !control.signal.aborted && setAttempt((n) => n + 1), wait * 1000);
    }
  }

  async function explainOne(segment, index, from, signal) {
    if (!/\p{L}/u.test(segment.source)) return null; // numbers and marks came back as they are
    const question = { text: segment.source, source: from, target: languages.target, translation: segment.tokens };
    const explanation = await api.explain(question, signal).catch((error) => {
      if (error.name === "AbortError") throw error;
      return null; // the translation stands without it
    });
    if (explanation) replace(index, segment, { explanation });
    return explanation;
  }

  // Only if it is still the same sentence that stands there.
  function replace(index, before, changes) {
    setSegments((all) =>
      all[index]?.source === before.source && all[index].start === before.start
        ? all.map((one, at) => (at === index ? { ...one, ...changes } : one))
        : all,
    );
  }

  const look = useCallback(
    (index) => {
      const segment = segments[index];
      if (segment?.tokens && !segment.explanation && state === "done") {
        explainOne(segment, index, source, running.current?.signal).catch(() => {});
      }
    },
    [segments, state, source],
  );

  // The words that could stand in place of one, and the sentence again from that word on.
  const choices = useCallback(
    (index, word) => {
      const { source: sentence, tokens, explanation } = segments[index];
      const prefix = tokens.slice(0, explanation.target_words[word].first_token);
      return api.alternatives({ text: sentence, source, target: languages.target, prefix });
    },
    [segments, source, languages],
  );
  const choose = useCallback(
    async (index, word, choice) => {
      const segment = segments[index];
      const first = segment.explanation.target_words[word].first_token;
      const prefix = [...segment.tokens.slice(0, first), ...choice.tokens];
      const question = { text: segment.source, source, target: languages.target, prefix };
      const explanation = await api.explain(question, running.current?.signal);
      replace(index, segment, {
        explanation,
        text: explanation.target,
        tokens: explanation.tokens,
        prefix,
        changed: true,
      });
    },
    [segments, source, languages],
  );
  // What a person wrote stands there at once; it has no tokens that the model chose, so it is explained anew.
  const correct = useCallback(
    (index, words) => replace(index, segments[index], { text: words, tokens: null, corrected: true, suggestion: null, faults: [], repaired: [], explanation: null }),
    [segments],
  );
  const undo = useCallback(() => {
    setSegments((all) =>
      all.map((one) => (one.changed ? { ...one, ...chosen(one.candidates[0]), prefix: [], changed: false, explanation: null } : one)),
    );
  }, []);
  useEffect(() => { // what was undone is explained anew
    if (state !== "done") return;
    segments.forEach((segment, index) => segment.prefix && !segment.changed && !segment.explanation && look(index));
  }, [segments, state]);

  const { before, after } = around(asked.current, segments, state === "done");
  return {
    segments,
    before,
    after,
    text: (segments.map((segment, at) => before[at] + segment.text).join("") + after).trim(),
    state,
    problem,
    detected,
    languages: { source, target: languages.target },
    look,
    choices,
    choose,
    correct,
    undo,
    changed: segments.some((segment) => segment.changed),
    retry: () => setAttempt((n) => n + 1),
  };
}

const chosen = (candidate) => ({ text: candidate.text, tokens: candidate.tokens });

// What stood around the sentences: before each of them, and after the last, which is known when all are there.
function around(asked, segments, complete) {
  let position = 0;
  const before = segments.map((segment) => {
    const gap = asked.slice(position, segment.start);
    position = segment.end;
    return gap;
  });
  return { before, after: complete && segments.length ? asked.slice(position) : "" };
}
