// Two runs side by side; or a result that was kept in a file.

import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { addressOf } from "../router.js";
import { allResults, allRuns, differences, oneResult, useRunLog } from "../runs.js";
import { Failure } from "./failure.js";
import { Experiment } from "./compare/experiment.js";
import { Measurement, Report } from "./compare/report.js";
import { Curves } from "./training/curves.js";

export function CompareView({ values }) {
  const [known, setKnown] = useState(null); // {runs, results}
  const [problem, setProblem] = useState(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    Promise.all([allRuns(), allResults()]).then(([runs, results]) => { setKnown({ runs, results }); setProblem(null); }, setProblem);
  }, [attempt]);
  if (problem) return html`<${Failure} problem=${problem} retry=${() => setAttempt(attempt + 1)} />`;
  if (!known) return null;
  const { runs, results } = known;
  const opened = results.find(({ name }) => name === values.result);
  const others = (one) => runs.filter((run) => run.name !== one.name && run.source === one.source && run.target === one.target);
  const comparable = runs.filter((run) => others(run).length);
  const a = comparable.find(({ name }) => name === values.a) ?? comparable[0];
  const b = a && (others(a).find(({ name }) => name === values.b) ?? others(a)[0]);
  const go = (changes) => { location.hash = addressOf("compare", changes); };
  return html`
    <h1 class="unseen">Compare</h1>
    <section class="sheet run-head" aria-label="What is compared">
      ${b && html`
        <${RunChoice} label="A" runs=${comparable} value=${opened ? "" : a.name} onChoose=${(name) => go({ a: name, b: b.name === name ? a.name : b.name })} />
        <${RunChoice} label="B" runs=${others(a)} value=${opened ? "" : b.name} onChoose=${(name) => go({ a: a.name, b: name })} />`}
      ${results.length > 0 && html`<label class="run-choice">Result
        <select value=${opened?.name ?? ""} onChange=${(event) => go(event.target.value ? { result: event.target.value } : {})}>
          <option value="">${b ? "none: the runs themselves" : "choose one"}</option>
          ${results.map(({ name, kind, title }) => html`<option key=${name} value=${name}>${kind === "comparison" ? "Comparison" : "Experiment"}: ${title}</option>`)}
        </select></label>`}
      ${!b && !results.length && html`<p class="note">No two runs here are of one pair of languages. To compare
        two, start <code>dragoman serve runs/a runs/b</code>; to open results that were kept, add <code>--results DIRECTORY</code>.</p>`}
    </section>
    ${opened && html`<${Opened} key=${opened.name} result=${opened} runs=${runs} />`}
    ${!opened && b && html`<${TwoRuns} key=${`${a.name}\n${b.name}`} a=${a} b=${b} />`}
  `;
}

function RunChoice({ label, runs, value, onChoose }) {
  return html`<label class="run-choice">${label}
    <select value=${value} onChange=${(event) => onChoose(event.target.value)}>
      ${!value && html`<option value="">—</option>`}
      ${runs.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select></label>`;
}

function TwoRuns({ a, b }) {
  const [settings, setSettings] = useState(null);
  const [problem, setProblem] = useState("");
  const [axis, setAxis] = useState("step");
  const logs = [{ name: a.name, log: useRunLog(a.name) }, { name: b.name, log: useRunLog(b.name) }];
  useEffect(() => {
    differences(a.name, b.name).then(setSettings, (error) => setProblem(error.message));
  }, []);
  return html`
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${settings && html`<${Settings} differing=${settings} a=${a.name} b=${b.name} />`}
    ${logs.some(({ log }) => log.train.length) && html`<${Curves} logs=${logs} axis=${axis} onAxis=${setAxis} />`}
    <${Measurement} a=${a} b=${b} />
  `;
}

export function Settings({ differing, a, b }) {
  const shown = (value) => (value === null || value === undefined ? "—" : typeof value === "string" ? value : JSON.stringify(value));
  return html`<section class="sheet study" aria-label="Settings that differ">
    <header><h2>Settings that differ</h2></header>
    ${differing.length
      ? html`<div class="scroll" role="region" tabindex="0" aria-label="Settings"><table class="settings">
          <thead><tr><th scope="col">setting</th><th scope="col">A: ${a}</th><th scope="col">B: ${b}</th></tr></thead>
          <tbody>${differing.map((one) => html`<tr key=${one.key}><th scope="row">${one.key}</th><td>${shown(one.a)}</td><td>${shown(one.b)}</td></tr>`)}</tbody>
        </table></div>`
      : html`<p class="note">None: the two were made from the same settings.</p>`}
  </section>`;
}

function Opened({ result, runs }) {
  const [content, setContent] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    oneResult(result.name).then(setContent, (error) => setProblem(error.message));
  }, []);
  if (problem) return html`<p class="problem" role="alert">${problem}</p>`;
  if (!content) return null;
  if (result.kind === "experiment") return html`<${Experiment} content=${content} />`;
  return html`
    ${Array.isArray(content.configuration) && html`<${Settings} differing=${content.configuration} a=${content.a} b=${content.b} />`}
    <${Report} report=${content} runs=${runs} />`;
}
