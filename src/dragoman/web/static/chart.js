// Curves, drawn by uPlot: it is fetched when the first chart is shown. What a chart says is also told in words.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { short } from "./views/numbers.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const SERIES = ["--curve-1", "--curve-2", "--curve-3", "--curve-4"];
const DASHES = [undefined, [6, 4], [2, 3], [8, 3, 2, 3]];

let loading = null;
const library = () => (loading ??= import("./vendor/uplot.js").then((module) => module.default));

// series: [{label, points: [[x, y], ...]}], each ascending in x. `format` and `formatX` write numbers out.
export function Chart({ title, series, logarithmic = false, format, formatX, dots = false }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [pointed, setPointed] = useState(null); // an index into the joint table
  const [ready, setReady] = useState(null);
  const shown = series.filter(({ points }) => points.length);
  const shape = shown.map(({ label }) => label).join("\n") + logarithmic;
  useEffect(() => { library().then((uPlot) => setReady(() => uPlot)); }, []);

  const table = useMemo(() => {
    if (!ready || !shown.length) return null;
    return ready.join(shown.map(({ points }) => [points.map(([x]) => x), points.map(([, y]) => y)]));
  }, [ready, series]);

  useEffect(() => { // a new plot where other curves are to be drawn
    if (!table) return undefined;
    const line = { stroke: () => colour("--line"), width: 1 };
    // On a logarithmic scale a line for each power of ten is enough.
    const tens = (_, splits) => splits.map((value) => (!logarithmic || Number.isInteger(Math.log10(value)) ? value : null));
    const axis = { stroke: () => colour("--faint"), grid: line, ticks: line, font: "12px system-ui, sans-serif" };
    const made = new ready(
      {
        width: box.current.clientWidth,
        height: 190,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { x: { time: false }, y: { distr: logarithmic ? 3 : 1 } },
        axes: [
          { ...axis, values: (_, values) => values.map(formatX), space: 60 },
          { ...axis, grid: { ...line, filter: tens }, ticks: { ...line, filter: tens }, values: (_, values) => values.map((value) => (value == null ? "" : short(value))), size: 58 },
        ],
        series: [{}, ...shown.map((one, at) => ({
          label: one.label,
          stroke: () => colour(SERIES[at % SERIES.length]),
          dash: DASHES[at % DASHES.length],
          width: 2,
          spanGaps: true,
          points: { show: dots || one.points.length < 2, size: 6, fill: () => colour("--sheet") },
        }))],
        hooks: { setCursor: [(self) => setPointed(self.cursor.idx ?? null)] },
      },
      table,
      box.current,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: box.current.clientWidth, height: 190 }));
    resized.observe(box.current);
    const repaint = () => made.redraw(false);
    const theme = new MutationObserver(repaint);
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", repaint);
    return () => {
      resized.disconnect();
      theme.disconnect();
      system.removeEventListener("change", repaint);
      made.destroy();
      plot.current = null;
    };
  }, [ready, shape, table !== null, formatX]);
  useEffect(() => { if (table) plot.current?.setData(table); }, [table]);

  const last = ({ points }) => points[points.length - 1];
  const valueAt = (at) => (pointed === null || !table ? null : table[at + 1][pointed]);
  const words = shown.map((one) => `${one.label} ${format(last(one)[1])} at ${formatX(last(one)[0])}, from ${format(one.points[0][1])}`);
  return html`<figure class="chart">
    <figcaption><h3>${title}</h3>
      ${shown.map((one, at) => html`<span class="key" key=${one.label}>
        <i class=${`mark curve-${(at % SERIES.length) + 1}`}></i>${shown.length > 1 || one.label !== title ? `${one.label} ` : ""}
        <b>${format(valueAt(at) ?? last(one)[1])}</b></span>`)}
    </figcaption>
    <div class="plot" ref=${box} role="img" aria-label=${words.length ? `${title}: ${words.join("; ")}` : `${title}: nothing yet`}>
      ${!shown.length && html`<span class="empty">nothing yet</span>`}
    </div>
  </figure>`;
}
