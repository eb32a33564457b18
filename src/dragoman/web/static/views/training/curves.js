// The curves of one run, or of several over each other: they point at the same place, and are zoomed into together.

import { html, useMemo, useState } from "../../vendor/htm-preact.js";
import { Chart, CLOCK_TICKS } from "../../chart.js";
import { clock, one, short, three, whole } from "../numbers.js";
import { asCsv, movingAverage, save } from "./series.js";

// What is drawn: where it stands in the log, and how it is written. The loss in training is that of targets with label
// smoothing; that of the validation is not.
const CURVES = [
  { title: "Loss", of: [["train", "loss", "training, label-smoothed"], ["valid", "nll", "validation"]], format: three, noisy: true },
  { title: "Perplexity", of: [["train", "perplexity", "training"], ["valid", "perplexity", "validation"]], format: short, logarithmic: true, noisy: true },
  { title: "BLEU", of: [["valid", "bleu", "validation, greedy"]], format: one, dots: true },
  { title: "Rate", of: [["train", "rate", "rate"]], format: short },
  { title: "Gradient norm", of: [["train", "gradient_norm", "norm"]], format: short, noisy: true },
  { title: "Tokens a second", of: [["train", "tokens_per_second", "target tokens"]], format: whole, noisy: true },
];
const PARTS = { "1": "all of it", "0.5": "the last half", "0.25": "the last quarter", "0.1": "the last tenth" };
const GROUP = "training";

export function Curves({ logs, axis, onAxis }) {
  const x = axis === "time" ? "seconds" : "step";
  const formatX = axis === "time" ? clock : whole;
  const [weight, setWeight] = useState(0);
  const [isLog, setLog] = useState(null); // null: each chart as it is best
  const [zoom, setZoom] = useState(null); // [from, to] of the axis, or a share of the end
  const newest = Math.max(0, ...logs.flatMap(({ log }) => log.train.slice(-1).map((point) => point[x])));
  const range = typeof zoom === "number" ? [newest * (1 - zoom), newest] : zoom;
  const charts = useMemo(
    () => CURVES.map((curve) => {
      // Two runs are told apart by their names; then only what both have of the validation, or else of the training.
      const wanted = logs.length > 1 ? curve.of.slice(-1) : curve.of;
      const series = logs.flatMap(({ name, log }) => wanted.map(([part, field, label]) => ({
        label: name ? `${name}, ${label}` : label,
        part,
        points: log[part].filter((point) => point[field] != null && point[x] != null).map((point) => [point[x], point[field]]),
      })));
      const smooth = (one_, hue) => (curve.noisy && weight > 0 && one_.part === "train"
        ? [{ ...one_, hue, faint: true }, { ...one_, hue, label: `${one_.label}, EMA ${weight.toFixed(2)}`, points: movingAverage(one_.points, weight) }]
        : [{ ...one_, hue }]);
      const positive = series.every(({ points }) => points.every(([, y]) => y > 0));
      return { ...curve, series: series.flatMap(smooth), logarithmic: positive && (isLog ?? curve.logarithmic ?? false) };
    }),
    [axis, weight, isLog, ...logs.map(({ log }) => log.train), ...logs.map(({ log }) => log.valid), logs.map(({ name }) => name).join("\n")],
  );
  const all = () => setZoom(null);
  return html`<section class="sheet study curves" aria-label="Curves">
    <header><h2>Curves</h2>
      <fieldset class="choice-row"><legend class="unseen">Over what</legend>
        ${[["step", "by step"], ["time", "by time"]].map(([value, label]) => html`<label key=${value}>
          <input type="radio" name="axis" checked=${axis === value} onChange=${() => { all(); onAxis(value); }} />${label}</label>`)}
      </fieldset>
    </header>
    <div class="controls">
      <label>Moving average (EMA) <input type="range" min="0" max="0.98" step="0.02" value=${weight} aria-valuetext=${weight ? `weight ${weight.toFixed(2)}` : "off"}
        onInput=${(event) => setWeight(Number(event.target.value))} /> <strong>${weight ? weight.toFixed(2) : "off"}</strong></label>
      <label>Scale <select value=${isLog === null ? "" : String(isLog)} onChange=${(event) => setLog(event.target.value === "" ? null : event.target.value === "true")}>
        <option value="">as each is best</option><option value="false">linear</option><option value="true">logarithmic</option></select></label>
      <label>Shown <select value=${zoom === null ? "1" : typeof zoom === "number" ? String(zoom) : "drawn"} onChange=${(event) => setZoom(event.target.value === "1" ? null : Number(event.target.value))}>
        ${Object.entries(PARTS).sort(([a], [b]) => b - a).map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
        ${Array.isArray(zoom) && html`<option value="drawn">${formatX(zoom[0])} to ${formatX(zoom[1])}</option>`}</select></label>
      ${zoom !== null && html`<button type="button" class="quiet" onClick=${all}>Show all</button>`}
      <button type="button" class="quiet" onClick=${() => save(asCsv(logs), `${logs.map(({ name }) => name || "training").join("-")}.csv`)}>Save the data</button>
    </div>
    <p class="note">Draw across a chart to look closer, press twice for all of it. ${weight > 0 ? "The pale line is what was logged; the strong one its exponential moving average." : ""}</p>
    <div class="charts">${charts.map((chart) => html`<${Chart} key=${chart.title} ...${chart} formatX=${formatX} group=${GROUP} range=${range} onRange=${setZoom}
      ticks=${axis === "time" ? CLOCK_TICKS : undefined} />`)}</div>
  </section>`;
}
