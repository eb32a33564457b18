// A run as it learns, or as it learned: curves, alerts, samples, and one sentence through its kept checkpoints.

import { html, useEffect, useLayoutEffect, useState } from "../vendor/htm-preact.js";
import { replaceAddress } from "../router.js";
import { allRuns, useRunLogs } from "../runs.js";
import { Failure } from "./failure.js";
import { Alerts } from "./training/alerts.js";
import { Curves } from "./training/curves.js";
import { Pinned } from "./training/pinned.js";
import { Replay } from "./training/replay.js";
import { Samples } from "./training/samples.js";
import { secondsLeft } from "./training/series.js";
import { clock, one, whole } from "./numbers.js";

const MOST_BESIDE = 3; // other runs: a browser has six connections to a service
const MEGABYTE = 2 ** 20;

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
  const [beside, setBeside] = useState((values.beside ?? "").split(",").filter((name) => runs.some((other) => other.name === name && other !== run)).slice(0, MOST_BESIDE));
  const [log, ...others] = useRunLogs([run.name, ...beside]);
  useLayoutEffect(() => replaceAddress("training", { run: run.name, x: axis === "time" ? axis : "", beside: beside.join(","), ...shown }), [run.name, axis, shown, beside]);

  const last = [log.train, log.valid].flatMap((points) => points.slice(-1)).sort((a, b) => b.step - a.step)[0];
  const best = log.valid.reduce((so, point) => (!so || point.bleu > so.bleu ? point : so), null);
  const state = log.state || run.state;
  const left = state === "training" ? secondsLeft(log.train, run) : null;
  const logs = beside.length ? [{ name: run.name, log }, ...beside.map((name, at) => ({ name, log: others[at] }))] : [{ name: "", log }];
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
      ${left !== null && html`<span>about <b data-shown="left">${clock(left)}</b> left</span>`}
      ${log.memory && html`<span>memory <b data-shown="memory">${whole(log.memory / MEGABYTE)}</b> MiB</span>`}
      ${log.end && html`<${Ended} end=${log.end} />`}
      ${last && state !== "finished" && html`<progress max="1" value=${Math.min(1, done)} aria-label="Share of the budget that is used up"></progress>`}
    </section>
    ${log.problem && html`<p class="problem" role="alert">${log.problem.message}</p>`}
    ${log.heard && !last && html`<p class="note">No step is done yet: the text is being prepared. The curves begin by themselves.</p>`}
    <${Alerts} alerts=${log.alerts} />
    ${last && runs.length > 1 && html`<${Beside} runs=${runs.filter((other) => other !== run)} chosen=${beside} onChoose=${setBeside} />`}
    ${last && html`<${Curves} logs=${logs} axis=${axis} onAxis=${setAxis} />`}
    ${last && log.checkpoints.length > 0 && html`<${Pinned} key=${`pinned ${run.name}`} run=${run.name} checkpoints=${log.checkpoints} />`}
    ${log.valid.length > 0 && html`<${Samples} valid=${log.valid} />`}
    ${last && log.checkpoints.length > 0 && html`<${Replay} key=${run.name} run=${run} checkpoints=${log.checkpoints}
      first=${shown.text ?? log.valid[0]?.source ?? ""} valid=${log.valid} firstStep=${shown.step}
      onShown=${(text, step) => setShown({ text, step })} />`}
  `;
}

// What each kind of weights scored at the end, and which of them translate.
const KINDS = { average: "average of the last checkpoints", ema: "running average", best: "best checkpoint", last: "last checkpoint" };
function Ended({ end }) {
  const scores = Object.entries(end).map(([name, value]) => [...name.split("_"), value]).filter(([kind, , value]) => kind in KINDS && typeof value === "number");
  return html`<span class="ended">${scores.map(([kind, measure, value], at) => html`${at ? "; " : ""}${KINDS[kind]} <b data-shown=${`${kind} ${measure}`}>${one(value)}</b>${measure === "bleu" ? "" : ` ${measure}`}`)}${scores.length ? ". " : ""}
    What translates: <b data-shown="kind">${KINDS[end.kind] ?? end.kind}</b></span>`;
}

// Other runs, to be drawn over this one.
function Beside({ runs, chosen, onChoose }) {
  const toggle = (name) => onChoose(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`<fieldset class="sheet beside-runs"><legend class="unseen">Draw other runs over it</legend><span class="hint" aria-hidden="true">Draw over it</span>
    ${runs.map(({ name }) => html`<label key=${name}><input type="checkbox" checked=${chosen.includes(name)} disabled=${!chosen.includes(name) && chosen.length >= MOST_BESIDE}
      onChange=${() => toggle(name)} /> ${name}</label>`)}</fieldset>`;
}
