// A run as it learns, or as it learned: curves, alerts, samples, and one sentence through its kept checkpoints.

import { html, useEffect, useLayoutEffect, useState } from "../vendor/htm-preact.js";
import { replaceAddress } from "../router.js";
import { allRuns, useRunLog } from "../runs.js";
import { Failure } from "./failure.js";
import { Alerts } from "./training/alerts.js";
import { Curves } from "./training/curves.js";
import { Replay } from "./training/replay.js";
import { Samples } from "./training/samples.js";
import { clock, one, whole } from "./numbers.js";

export function TrainingView({ values }) {
  const [runs, setRuns] = useState(null);
  const [problem, setProblem] = useState(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    allRuns().then((found) => { setRuns(found); setProblem(null); }, setProblem);
  }, [attempt]);
  if (problem) return html`<${Failure} problem=${problem} retry=${() => setAttempt(attempt + 1)} />`;
  return runs && html`<${Training} runs=${runs} values=${values} />`;
}

const STATES = { waiting: "preparing", training: "training", stopped: "stopped", finished: "finished" };

function Training({ runs, values }) {
  const run = runs.find(({ name }) => name === values.run) ?? runs.find(({ state }) => state === "training") ?? runs[0];
  const [axis, setAxis] = useState(values.x === "time" ? "time" : "step");
  const [shown, setShown] = useState({ text: values.text, step: values.step });
  const log = useRunLog(run.name);
  useLayoutEffect(() => replaceAddress("training", { run: run.name, x: axis === "time" ? axis : "", ...shown }), [run.name, axis, shown]);

  const last = [log.train, log.valid].flatMap((points) => points.slice(-1)).sort((a, b) => b.step - a.step)[0];
  const best = log.valid.reduce((so, point) => (!so || point.bleu > so.bleu ? point : so), null);
  const state = log.state || run.state;
  const done = last ? Math.max(last.step / run.steps, run.minutes ? last.seconds / (60 * run.minutes) : 0) : 0;
  return html`
    <h1 class="unseen">Training</h1>
    <section class="sheet run-head" aria-label="The run">
      ${runs.length > 1
        ? html`<label class="run-choice"><span class="unseen">Run</span>
            <select value=${run.name} onChange=${(event) => { location.hash = `#/training?run=${encodeURIComponent(event.target.value)}`; }}>
              ${runs.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
            </select></label>`
        : html`<h2>${run.name}</h2>`}
      <span class=${`state ${state}`} role="status">${STATES[state] ?? state}</span>
      ${last && html`<span>step <b data-shown="step">${whole(last.step)}</b>${run.minutes ? "" : ` of ${whole(run.steps)}`}</span>
        <span>${clock(last.seconds)}${run.minutes ? ` of ${clock(60 * run.minutes)}` : ""}</span>`}
      ${best && html`<span>best BLEU <b data-shown="best">${one(best.bleu)}</b> at step ${whole(best.step)}</span>`}
      ${last && state !== "finished" && html`<progress max="1" value=${Math.min(1, done)} aria-label="Share of the budget that is used up"></progress>`}
    </section>
    ${log.problem && html`<p class="problem" role="alert">${log.problem.message}</p>`}
    ${log.heard && !last && html`<p class="note">No step is done yet: the text is being prepared. The curves begin by themselves.</p>`}
    <${Alerts} alerts=${log.alerts} />
    ${last && html`<${Curves} logs=${[{ name: "", log }]} axis=${axis} onAxis=${setAxis} />`}
    ${log.valid.length > 0 && html`<${Samples} valid=${log.valid} />`}
    ${last && log.checkpoints.length > 0 && html`<${Replay} key=${run.name} run=${run} checkpoints=${log.checkpoints}
      first=${shown.text ?? log.valid[0]?.source ?? ""} firstStep=${shown.step}
      onShown=${(text, step) => setShown({ text, step })} />`}
  `;
}
