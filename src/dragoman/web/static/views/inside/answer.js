// One answer of the service for a view: asked for when the view is first shown, and again when the question is another.

import { useEffect, useState } from "../../vendor/htm-preact.js";

// `ask(signal)`; `key` names the question: null asks nothing.
export function useAnswer(ask, key) {
  const [found, setFound] = useState({ key: null, answer: null, problem: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (key === null) return undefined;
    const control = new AbortController();
    ask(control.signal).then(
      (answer) => { if (!control.signal.aborted) setFound({ key, answer, problem: null }); },
      (problem) => { if (!control.signal.aborted) setFound({ key, answer: null, problem }); },
    );
    return () => control.abort();
  }, [key, attempt]);
  const current = found.key === key ? found : { answer: null, problem: null };
  return { ...current, retry: () => { setFound({ key: null, answer: null, problem: null }); setAttempt((n) => n + 1); } };
}
