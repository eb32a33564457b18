// Runs, as the views see them: their logs as they grow, their checkpoints, one against another.

import { useEffect, useState } from "./vendor/htm-preact.js";
import { ApiError, AWAY, ask, eventsOf } from "./api.js";
import { unpack } from "./packed.js";

const path = (...parts) => parts.map(encodeURIComponent).join("/");

export const allRuns = async () => (await ask("runs")).json();
export const differences = async (a, b, signal) => (await ask(path("compare", a, b), undefined, signal)).json();
export const allResults = async () => (await ask("results")).json();
export const oneResult = async (name) => (await ask(path("results", name))).json();

// One sentence through a kept checkpoint. `weight(layer, head, row, column)`; head -1 is the mean of all heads.
export async function replay(name, question, signal) {
  const { header, value } = unpack(await (await ask(path("runs", name, "replay"), question, signal)).arrayBuffer());
  const [layers, heads, rows, columns] = header.shape;
  const one = (layer, head, row, column) => value(((layer * heads + head) * rows + row) * columns + column);
  const weight = (layer, head, row, column) => {
    if (head >= 0) return one(layer, head, row, column);
    let sum = 0;
    for (let each = 0; each < heads; each += 1) sum += one(layer, each, row, column);
    return sum / heads;
  };
  return { ...header, layers, heads, weight };
}

export const sentencesOf = async (name, signal) => (await ask(path("runs", name, "sentences"), undefined, signal)).json();

// Sentences as a kept checkpoint translates them, and how probable it finds their references.
export const pinned = async (name, question, signal) => (await ask(path("runs", name, "pinned"), question, signal)).json();

// Both runs translate; `onProgress(done, total)` on the way, the report at the end.
export async function compare(question, signal, onProgress) {
  for await (const [name, values] of eventsOf(await ask("compare", question, signal))) {
    if (name === "progress") onProgress(values.done, values.total);
    else if (name === "error") throw new ApiError(`${values.error}.`, 400, values.retry_after);
    else if (name === "done") return values;
  }
  throw new ApiError("The answer ended in the middle.");
}

const NOTHING = { train: [], valid: [], alerts: [], state: "", checkpoints: [], memory: null, end: null, heard: false, problem: null };

// The logs of runs by their names: all of each, and what is added while one looks. After a broken connection it is listened
// to again.
export function useRunLogs(names) {
  const [logs, setLogs] = useState({});
  const wanted = names.join("\n");
  useEffect(() => {
    const chosen = names.filter(Boolean);
    setLogs((now) => Object.fromEntries(chosen.map((name) => [name, now[name] ?? NOTHING])));
    if (!chosen.length) return undefined;
    // A page that nobody sees does not listen: a browser has six connections to a service, for all of its pages.
    let control = null;
    const look = () => {
      control?.abort();
      if (document.hidden) return;
      control = new AbortController();
      for (const name of chosen) {
        listen(name, control.signal, (change) => setLogs((now) => (name in now ? { ...now, [name]: change(now[name]) } : now)));
      }
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      control?.abort();
    };
  }, [wanted]);
  return names.map((name) => logs[name] ?? NOTHING);
}

export const useRunLog = (name) => useRunLogs([name])[0];

async function listen(name, signal, setLog) {
  while (!signal.aborted) {
    let problem = null;
    try {
      for await (const [event, values] of eventsOf(await ask(path("runs", name, "events"), undefined, signal))) {
        if (signal.aborted) return;
        if (event === "state") setLog((log) => ({ ...log, ...values, heard: true, problem: null }));
        if (event === "log") setLog((log) => ({ ...log, ...merged(values.restarted ? NOTHING : log, values), problem: null }));
      }
    } catch (error) {
      if (signal.aborted) return;
      problem = error;
      if (error.status >= 400 && error.status < 500) {
        setLog((log) => ({ ...log, problem }));
        return;
      }
    }
    problem ??= new ApiError(AWAY);
    setLog((log) => ({ ...log, problem }));
    await new Promise((resolve) => { setTimeout(resolve, 2000); });
  }
}

// Points from the first new step on replace what was there.
function merged(log, { train, valid, alerts }) {
  const replaced = (old, added) => (added.length ? [...old.filter(({ step }) => step < added[0].step), ...added] : old);
  return { train: replaced(log.train, train), valid: replaced(log.valid, valid), alerts };
}
