// A translation as it comes about: asked for when typing pauses, sentence by sentence, explained afterwards.
// Only the answer to the newest question is ever shown: an older one is given up, here and in the service. When there is
// no answer the old one stays, marked as such, and the question is asked again until there is one.

import { useCallback, useEffect, useMemo, useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { explained, inTurn, knownExplanation } from "./checking.js";
import { choicesFor, choicesIn, keepChoices } from "./choices.js";
import { excess } from "./words.js";

const PAUSE = 250; // milliseconds without a key before it is translated
const PATIENCE = 30_000; // milliseconds without a sign of the service; longer with each try, as it may be slow
const FIRST_WAIT = 2; // seconds before it is tried again, twice as many each time
const LONGEST_WAIT = 30;

export function useTranslation(about, text, languages) {
  const [segments, setSegments] = useState([]);
  const [state, setState] = useState("idle"); // idle, working, done, failed
  const [problem, setProblem] = useState(null);
  const [wait, setWait] = useState(null); // seconds until it is tried again; 0: it is being tried; null: it is not
  const [detected, setDetected] = useState(null);
  const [attempt, setAttempt] = useState(0);
  const attempted = useRef(0);
  const failures = useRef(0); // since the last answer
  const running = useRef(null);
  const asked = useRef({ text: "", languages }); // whose sentences stand there
  const source = detected?.source ?? languages.source;

  useEffect(() => {
    running.current?.abort();
    if (!text.trim() || excess(text, about.character_limit) > 0) {
      setSegments([]);
      setDetected(null);
      setProblem(null);
      setState("idle");
      return undefined;
    }
    const control = new AbortController();
    running.current = control;
    const again = attempt !== attempted.current;
    attempted.current = attempt;
    const timer = setTimeout(() => start(control), again ? 0 : PAUSE);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, languages, attempt]);

  async function start(control) {
    const { signal } = control;
    const question = { text, source: languages.source, target: languages.target };
    const choiceOf = choicesFor(choicesIn(languages), text);
    const found = [];
    if (problem) setWait(0); // what failed is told until there is an answer
    else setState("working");
    try {
      const last = await api.translate(question, signal, PATIENCE * 2 ** failures.current, (segment) => {
        if (signal.aborted) return;
        const translated = { ...segment, ...chosen(segment.candidates[0]), explanation: null, changed: false };
        const explanation = segment.pivot_text === null ? knownExplanation(asking(translated, languages.source)) : null;
        found.push({ ...translated, explanation, ...(segment.corrected ? null : choiceOf(segment)) });
        asked.current = { text, languages };
        setProblem(null);
        setState("working");
        setSegments([...found]);
      });
      if (signal.aborted) return;
      if (!found.length) setSegments([]);
      keepChoices(languages, text, found);
      setDetected(last.detected && { ...last.detected, source: last.source });
      setProblem(null);
      setState("done");
      failures.current = 0;
      const unexplained = found.map((segment, index) => ({ segment, index, question: asking(segment, last.source), signal }));
      if (last.pivot === null) checks.later(unexplained.filter(({ segment }) => !segment.explanation));
    } catch (error) {
      if (!signal.aborted) failed(error, signal);
    }
  }

  const asking = (segment, from) => ({ text: segment.source, source: from, target: languages.target, translation: segment.tokens });

  function failed(error, signal) {
    setState("failed");
    setProblem(error);
    if (!api.isPassing(error)) return setWait(null);
    const seconds = error.retryAfter || Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures.current);
    failures.current += 1;
    setWait(seconds);
    return setTimeout(() => !signal.aborted && setAttempt((n) => n + 1), seconds * 1000);
  }

  const checks = useMemo(() => inTurn(async ({ segment, index, question, signal }) => {
    if (!/\p{L}/u.test(segment.source)) return; // numbers and marks came back as they are
    const explanation = await explained(question, signal);
    if (explanation) replace(index, segment, { explanation });
  }), []);

  // Only if it is still the same sentence that stands there.
  function replace(index, before, changes) {
    setSegments((all) => {
      const same = all[index]?.source === before.source && all[index].start === before.start;
      return same && (changes.changed || all[index].text === before.text) ? all.map((one, at) => (at === index ? { ...one, ...changes } : one)) : all;
    });
  }

  const look = useCallback(
    (index) => {
      const segment = segments[index];
      if (!segment?.tokens || segment.explanation || segment.pivot_text !== null || state !== "done") return;
      checks.next({ segment, index, question: asking(segment, source), signal: running.current.signal });
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
    (index, words) => replace(index, segments[index], { text: words, tokens: null, corrected: true, changed: false, suggestion: null, faults: [], repaired: [], explanation: null }),
    [segments],
  );
  const undo = useCallback(() => {
    setSegments((all) =>
      all.map((one) => (one.changed ? { ...one, ...chosen(one.candidates[0]), prefix: [], changed: false, explanation: null } : one)),
    );
  }, []);
  useEffect(() => { // what was undone is explained anew
    if (state !== "done") return;
    keepChoices(asked.current.languages, asked.current.text, segments);
    segments.forEach((segment, index) => segment.prefix && !segment.changed && !segment.explanation && look(index));
  }, [segments, state]);

  const { before, after } = around(asked.current.text, segments, state === "done");
  return {
    segments,
    before,
    after,
    text: (segments.map((segment, at) => before[at] + segment.text).join("") + after).trim(),
    state,
    problem,
    wait,
    isOfThisText: asked.current.text === text && asked.current.languages === languages,
    detected,
    languages: { source, target: languages.target },
    look,
    choices,
    choose,
    correct,
    undo,
    changed: segments.filter((segment) => segment.changed).length,
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
