// A translation as it comes about: asked for when typing pauses, sentence by sentence, explained afterwards.
// Only the answer to the newest question is ever shown: an older one is given up, here and in the service. When there is
// no answer the old one stays, marked as such, and the question is asked again until there is one.

import { useCallback, useEffect, useMemo, useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { explained, inTurn, knownExplanation } from "./checking.js";
import { choicesFor, choicesIn, keepChoices } from "./choices.js";
import { plainly, useChanges } from "./changes.js";
import { excess } from "./words.js";

const PAUSE = 250; // milliseconds without a key before it is translated
const PATIENCE = 30_000; // milliseconds without a sign of the service; longer with each try, as it may be slow
const FIRST_WAIT = 2; // seconds before it is tried again, twice as many each time
const LONGEST_WAIT = 30;
const CHECK_AFTER = 700; // milliseconds after the last key in the translation

// `terms`: the glossary of these languages, as the service takes it.
export function useTranslation(about, text, languages, terms) {
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
  const changes = useChanges(segments, setSegments);

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
  }, [text, languages, attempt, terms]);

  async function start(control) {
    const { signal } = control;
    const question = { text, source: languages.source, target: languages.target, ...(terms.length ? { glossary: terms } : {}) };
    const choiceOf = choicesFor(choicesIn(languages), text);
    const found = [];
    if (problem) setWait(0); // what failed is told until there is an answer
    else setState("working");
    try {
      const last = await api.translate(question, signal, PATIENCE * 2 ** failures.current, (segment) => {
        if (signal.aborted) return;
        const translated = { ...segment, ...plainly(segment) };
        const explanation = segment.pivot_text === null ? knownExplanation(asking(translated, languages.source)) : null;
        found.push({ ...translated, explanation, ...choiceOf(segment) });
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

  // What a person typed has no tokens: it is asked for as it is written.
  const asking = ({ source: sentence, tokens, text: words }, from) => ({
    text: sentence, source: from, target: languages.target, ...(tokens ? { translation: tokens } : { translation_text: words }),
  });

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
    // Spaces at its ends or two in a row are no part of it: then its words would stand in other places.
    if (explanation && explanation.target === segment.text) changes.amend(index, segment, { explanation, tokens: explanation.tokens });
  }), []);

  const look = useCallback(
    (index) => {
      const segment = segments[index];
      if (!segment?.text.trim() || segment.explanation || segment.pivot_text !== null || state !== "done") return;
      checks.next({ segment, index, question: asking(segment, source), signal: running.current.signal });
    },
    [segments, state, source],
  );

  useEffect(() => { // what was changed is explained anew: what is typed, when typing pauses
    if (state !== "done") return undefined;
    keepChoices(asked.current.languages, asked.current.text, segments);
    const open = segments.flatMap((segment, index) => (segment.touched && !segment.explanation ? [index] : []));
    if (!open.length) return undefined;
    open.filter((index) => !segments[index].edited).forEach(look);
    const timer = setTimeout(() => open.filter((index) => segments[index].edited).forEach(look), CHECK_AFTER);
    return () => clearTimeout(timer);
  }, [segments, state]);

  const of = (index) => ({ text: segments[index].source, source, target: languages.target });
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
    // The words that could follow a beginning, the sentence again with it, and other ways to say the whole of it.
    choices: (index, beginning, signal) => api.alternatives({ ...of(index), ...beginning }, signal),
    continued: (index, beginning, signal) => api.explain({ ...of(index), ...beginning }, signal),
    others: (index, count, signal) => api.candidates({ ...of(index), n_best: count, ...(terms.length ? { glossary: terms } : {}) }, signal),
    ...changes,
    changed: segments.filter((segment) => segment.changed).length,
    retry: () => setAttempt((n) => n + 1),
  };
}

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
