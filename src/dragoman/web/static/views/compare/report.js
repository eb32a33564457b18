// Which of two runs translates better, by how much and how surely, and on which sentences.

import { html, useEffect, useMemo, useRef, useState } from "../../vendor/htm-preact.js";
import { AttentionTable, HeadChoice } from "../../attention.js";
import { compare, replay } from "../../runs.js";
import { one, two, whole } from "../numbers.js";

export function Measurement({ a, b }) {
  const [count, setCount] = useState(300);
  const [progress, setProgress] = useState(null); // {done, total}
  const [report, setReport] = useState(null);
  const [problem, setProblem] = useState("");
  const control = useRef(null);
  useEffect(() => () => control.current?.abort(), []);
  const ready = a.has_model && b.has_model;
  const measure = async () => {
    control.current = new AbortController();
    setReport(null);
    setProblem("");
    setProgress({ done: 0, total: 1 });
    try {
      setReport(await compare({ a: a.name, b: b.name, sentences: count }, control.current.signal, (done, total) => setProgress({ done, total })));
    } catch (error) {
      if (error.name !== "AbortError") setProblem(error.message);
    }
    setProgress(null);
  };
  return html`
    <section class="sheet study" aria-label="Measure">
      <header><h2>Which translates better?</h2></header>
      <p class="note">${ready
        ? "Both translate the same sentences that neither was trained on; each is scored, and the difference tested by paired bootstrap."
        : "One of them has no model yet; it can be measured after its first validation."}</p>
      <div class="controls">
        <label>Sentences, at most <input type="number" min="1" max="10000" value=${count} onInput=${(event) => setCount(Math.max(1, Math.min(10000, Number(event.target.value) || 1)))} /></label>
        ${progress
          ? html`<button type="button" onClick=${() => control.current.abort()}>Stop</button>
              <progress max=${progress.total} value=${progress.done} aria-label="Translated"></progress>
              <span class="hint">${progress.done === progress.total ? "scoring" : `${whole(progress.done)} of ${whole(progress.total)} translated`}</span>`
          : html`<button type="button" class="go" disabled=${!ready} onClick=${measure}>Measure</button>`}
      </div>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    </section>
    ${report && html`<${Report} report=${report} runs=${[a, b]} />`}`;
}

export function Report({ report, runs }) {
  const { scores } = report;
  return html`
    ${scores && html`<section class="sheet study" aria-label="Scores">
      <header><h2>Scores</h2><span class="hint">${report.test_set}</span></header>
      ${[scores.bleu, scores.chrf].filter(Boolean).map((metric) => html`<${Metric} key=${metric.label} metric=${metric} report=${report} />`)}
      <p class="note">The bars are 95 % of ${whole(scores.samples)} resamples of ${whole(scores.sentences)} sentences. p is the chance of
        such a difference between two systems that are equally good.</p>
    </section>`}
    <${Sentences} report=${report} runs=${runs} />`;
}

function Metric({ metric, report }) {
  const ends = [metric.interval_a, metric.interval_b].flatMap(({ mean, half_width: half }) => [mean - half, mean + half]);
  const [low, high] = [Math.min(...ends, metric.a, metric.b), Math.max(...ends, metric.a, metric.b)];
  const room = (high - low || 1) * 0.08;
  const x = (value) => 4 + (392 * (value - low + room)) / (high - low + 2 * room || 1);
  const row = (name, value, { mean, half_width: half }, y) => html`<g class=${y < 20 ? "curve-1" : "curve-2"}>
    <line x1=${x(mean - half)} x2=${x(mean + half)} y1=${y} y2=${y} /><circle cx=${x(value)} cy=${y} r="5" /></g>`;
  const difference = metric.b - metric.a;
  return html`<div class="metric">
    <div><h3>${metric.label}</h3>
      <p><i class="mark curve-1"></i>A ${report.a} <b data-shown=${`${metric.label} a`}>${two(metric.a)}</b> <span class="hint">± ${two(metric.interval_a.half_width)}</span></p>
      <p><i class="mark curve-2"></i>B ${report.b} <b data-shown=${`${metric.label} b`}>${two(metric.b)}</b> <span class="hint">± ${two(metric.interval_b.half_width)}</span></p>
    </div>
    <svg viewBox="0 0 400 46" role="img" aria-label=${`${metric.label}: A ${two(metric.a)}, B ${two(metric.b)}`}>
      ${row(report.a, metric.a, metric.interval_a, 13)}${row(report.b, metric.b, metric.interval_b, 33)}</svg>
    <p class="verdict">B − A <b>${difference >= 0 ? "+" : ""}${two(difference)}</b>, p = <b data-shown=${`${metric.label} p`}>${metric.p_value.toFixed(4)}</b>:
      ${metric.p_value < 0.05 ? " a significant difference" : " no significant difference"}
      <span class="hint signature">${metric.signature}</span></p>
  </div>`;
}

const ORDERS = {
  b: ["where B is better", (left, right) => right.difference - left.difference],
  a: ["where A is better", (left, right) => left.difference - right.difference],
  most: ["by the size of the difference", (left, right) => Math.abs(right.difference) - Math.abs(left.difference)],
};
const AT_FIRST = 12;

function Sentences({ report, runs }) {
  const [order, setOrder] = useState("b");
  const [count, setCount] = useState(AT_FIRST);
  const [chosen, setChosen] = useState(null);
  const rows = useMemo(
    () => report.sentences.map((row) => ({ ...row, difference: row.chrf_b - row.chrf_a })).sort(ORDERS[order][1]),
    [report, order],
  );
  const pair = [report.a, report.b].map((name) => runs.find((run) => run.name === name));
  const canLook = pair.every((run) => run?.has_model);
  return html`<section class="sheet study" aria-label="Sentences">
    <header><h2>Sentences</h2>
      <label class="run-choice">sorted <select value=${order} onChange=${(event) => { setOrder(event.target.value); setChosen(null); }}>
        ${Object.entries(ORDERS).map(([value, [label]]) => html`<option key=${value} value=${value}>${label}</option>`)}
      </select></label>
    </header>
    <ol class="sentences">${rows.slice(0, count).map((row) => html`<li key=${row.source} class=${chosen === row.source ? "current" : ""}>
      <p class="measures"><b>${row.difference > 0 ? "+" : ""}${one(row.difference)}</b> chrF: A ${one(row.chrf_a)}, B ${one(row.chrf_b)}
        ${canLook && html`<button type="button" class="quiet" aria-expanded=${chosen === row.source ? "true" : "false"}
          onClick=${() => setChosen(chosen === row.source ? null : row.source)}>Attention of both</button>`}</p>
      <dl>
        <dt>source</dt><dd dir="auto">${row.source}</dd>
        <dt><i class="mark curve-1"></i>A</dt><dd dir="auto">${row.a}</dd>
        <dt><i class="mark curve-2"></i>B</dt><dd dir="auto">${row.b}</dd>
        <dt>reference</dt><dd dir="auto">${(row.references ?? []).join(" / ")}</dd>
      </dl>
      ${chosen === row.source && html`<div class="side-by-side">
        ${pair.map((run, at) => html`<${OneAttention} key=${run.name} letter=${"AB"[at]} run=${run} text=${row.source} />`)}</div>`}
    </li>`)}</ol>
    ${rows.length > count && html`<button type="button" class="quiet" onClick=${() => setCount(count + 50)}>Show more of ${whole(rows.length)}</button>`}
  </section>`;
}

function OneAttention({ letter, run, text }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const [head, setHead] = useState({ layer: -1, head: -1 });
  useEffect(() => {
    const control = new AbortController();
    replay(run.name, { text }, control.signal).then(setFound, (error) => !control.signal.aborted && setProblem(error.message));
    return () => control.abort();
  }, []);
  if (problem) return html`<p class="problem" role="alert">${problem}</p>`;
  if (!found) return html`<p class="note">Translating …</p>`;
  const layer = head.layer < 0 ? found.layers - 1 : head.layer;
  return html`<div>
    <h3>${letter}: ${run.name}</h3>
    <p dir="auto">${found.translation} <span class="hint">log-probability ${two(found.log_probability)}</span></p>
    <${HeadChoice} layers=${found.layers} heads=${found.heads} layer=${layer} head=${head.head} onChoose=${(l, h) => setHead({ layer: l, head: h })} />
    <${AttentionTable} caption=${`Cross-attention of ${letter}, ${run.name}`} rows=${found.produced} columns=${found.source}
      weight=${(row, column) => found.weight(layer, head.head, row, column)} />
  </div>`;
}
