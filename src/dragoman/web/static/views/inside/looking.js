// A sentence from inside as it comes about: the answer first, then the chosen head's layer, then all others.
// Only the newest question is answered: an older one is given up.

import { useCallback, useEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { headKey, KINDS, layersOf } from "./state.js";

const PAUSE = 300; // milliseconds without a key before it is asked

export function useLooking(data, state) {
  const [seen, setSeen] = useState(null);
  const [outcome, setOutcome] = useState(null);
  const [attention, setAttention] = useState(new Map()); // "kind.layer": all its heads
  const [effects, setEffects] = useState(new Map()); // "kind.layer.head": what switching it off changes
  const [progress, setProgress] = useState(null);
  const [problem, setProblem] = useState(null);
  const [attempt, setAttempt] = useState(0);
  const [working, setWorking] = useState(false);
  const begun = useRef(false);
  const measuring = useRef(null);
  const sooner = useRef(null); // the chosen layer's heads, asked for while the answer is still being drawn
  const asked = { text: state.text, source: state.from, target: state.to, sentence: state.sentence };
  const told = (error) => error.name !== "AbortError" && setProblem(error);

  useEffect(() => {
    setProblem(null);
    measuring.current?.abort();
    setProgress(null);
    if (!data.saved && !state.text.trim()) {
      setSeen(null);
      return undefined;
    }
    const control = new AbortController();
    const ask = async () => {
      setWorking(true);
      try {
        const answer = await data.look({ ...asked, translation: state.translation || null }, control.signal);
        if (control.signal.aborted) return;
        setEffects(new Map(data.measured.map((one) => [headKey(one), one.change])));
        setAttention(new Map());
        const question = { ...asked, translation: answer.tokens };
        if (state.layer < layersOf(answer, state.kind)) {
          const heads = data.attention({ ...question, changes: state.changes }, state.kind, state.layer, control.signal);
          heads.catch(() => {}); // whoever waits for it is told
          sooner.current = { question, changes: state.changes.join(","), name: `${state.kind}.${state.layer}`, heads };
        }
        setSeen({ ...answer, question });
      } catch (error) {
        told(error);
      } finally {
        if (!control.signal.aborted) setWorking(false);
      }
    };
    const timer = setTimeout(ask, begun.current ? PAUSE : 0);
    begun.current = true;
    return () => { clearTimeout(timer); control.abort(); };
  }, [state.text, state.from, state.to, state.sentence, state.translation, attempt]);

  const changes = state.changes.join(",");
  useEffect(() => { // pictures, and what the changes do
    if (!seen) return undefined;
    const control = new AbortController();
    const question = { ...seen.question, changes: state.changes };
    const fetchAll = async () => {
      const first = `${state.kind}.${state.layer}`;
      const every = KINDS.flatMap((kind) => Array.from({ length: layersOf(seen, kind) }, (_, layer) => `${kind}.${layer}`));
      const order = [...new Set([...(every.includes(first) ? [first] : []), ...every])];
      const found = new Map();
      const { name: known, heads } = sooner.current?.question === seen.question && sooner.current.changes === changes ? sooner.current : {};
      for (const [at, name] of order.entries()) {
        const [kind, layer] = name.split(".");
        found.set(name, await (name === known ? heads : data.attention(question, kind, Number(layer), control.signal)));
        if (control.signal.aborted) return;
        setAttention(new Map(found)); // each as soon as it is there
        if (at === 0) {
          if (state.changes.length) {
            setWorking(true);
            const answer = await data.intervene(question, control.signal);
            if (control.signal.aborted) return;
            setOutcome(answer);
            setWorking(false);
          } else {
            setOutcome(null);
          }
        }
      }
    };
    fetchAll().catch((error) => { if (!control.signal.aborted) { setWorking(false); setOutcome(null); } told(error); });
    return () => control.abort();
  }, [seen, changes]);

  // The chosen layer's heads are measured at once, so that the figure stands beside the picture.
  const complete = seen && attention.size === seen.encoder_layers + 2 * seen.decoder_layers;
  useEffect(() => {
    if (!complete || effects.has(headKey(state)) || layersOf(seen, state.kind) <= state.layer) return undefined;
    const control = new AbortController();
    const timer = setTimeout(() => measure(seen, [[state.kind, state.layer]], control.signal).catch(told), PAUSE);
    return () => { clearTimeout(timer); control.abort(); };
  }, [complete, seen, state.kind, state.layer]);

  async function measure(of, sites, signal) {
    for (const [at, [kind, layer]] of sites.entries()) {
      if (sites.length > 1) setProgress(`${at} of ${sites.length} layers`);
      const found = await data.effects(of.question, kind, layer, signal);
      if (signal.aborted) return;
      setEffects((before) => new Map([...before, ...found.map((one) => [headKey(one), one.change])]));
    }
    setProgress(null);
  }
  const measureAll = useCallback(() => {
    const control = new AbortController();
    measuring.current = control;
    const every = KINDS.flatMap((kind) => Array.from({ length: layersOf(seen, kind) }, (_, layer) => [kind, layer]));
    const sites = every.filter(([kind, layer]) => !effects.has(`${kind}.${layer}.0`));
    measure(seen, sites, control.signal).catch((error) => { setProgress(null); told(error); });
  }, [seen, effects]);

  return { seen, outcome, attention, effects, progress, problem, working, measureAll, retry: () => setAttempt((n) => n + 1) };
}
