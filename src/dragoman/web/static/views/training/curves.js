// The curves of one run, or of several over each other.

import { html, useMemo } from "../../vendor/htm-preact.js";
import { Chart } from "../../chart.js";
import { clock, one, short, three, whole } from "../numbers.js";

// What is drawn: where it stands in the log, and how it is written.
const CURVES = [
  { title: "Loss", of: [["train", "loss", "training, smoothed"], ["valid", "nll", "validation"]], format: three },
  { title: "Perplexity", of: [["train", "perplexity", "training"], ["valid", "perplexity", "validation"]], format: short, logarithmic: true },
  { title: "BLEU", of: [["valid", "bleu", "validation, greedy"]], format: one, dots: true },
  { title: "Rate", of: [["train", "rate", "rate"]], format: short },
  { title: "Gradient norm", of: [["train", "gradient_norm", "norm"]], format: short },
  { title: "Tokens a second", of: [["train", "tokens_per_second", "target tokens"]], format: whole },
];

export function Curves({ logs, axis, onAxis }) {
  const x = axis === "time" ? "seconds" : "step";
  const formatX = axis === "time" ? clock : whole;
  const charts = useMemo(
    () => CURVES.map((curve) => {
      // Two runs are told apart by their names; then only what both have of the validation, or else of the training.
      const wanted = logs.length > 1 ? curve.of.slice(-1) : curve.of;
      return {
        ...curve,
        series: logs.flatMap(({ name, log }) => wanted.map(([part, field, label]) => ({
          label: name ? `${name}, ${label}` : label,
          points: log[part].filter((point) => point[field] != null && point[x] != null).map((point) => [point[x], point[field]]),
        }))),
      };
    }),
    [axis, ...logs.map(({ log }) => log.train), ...logs.map(({ log }) => log.valid)],
  );
  return html`<section class="sheet study" aria-label="Curves">
    <header><h2>Curves</h2>
      <fieldset class="choice-row"><legend class="unseen">Over what</legend>
        ${[["step", "by step"], ["time", "by time"]].map(([value, label]) => html`<label key=${value}>
          <input type="radio" name="axis" checked=${axis === value} onChange=${() => onAxis(value)} />${label}</label>`)}
      </fieldset>
    </header>
    <div class="charts">${charts.map((chart) => html`<${Chart} key=${chart.title} ...${chart} formatX=${formatX} />`)}</div>
  </section>`;
}
