// Curves, drawn by uPlot: it is fetched when the first chart is shown. What a chart says is also told in words.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { short } from "./views/numbers.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const SERIES = ["--curve-1", "--curve-2", "--curve-3", "--curve-4", "--curve-5"];
const DASHES = [undefined, [6, 4], [2, 3], [8, 3, 2, 3], [3, 3]];
const HEIGHT = 190;

// Distances between ticks: without 2.5, whose multiples are no whole numbers, so that whole axes have even ticks.
const EVEN = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((first) => first * 10 ** (power - 6))).flat();
export const CLOCK_TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];

let loading = null;
const library = () => (loading ??= import("./vendor/uplot.js").then((module) => module.default));

// series: [{label, points: [[x, y], ...], hue, faint}], each ascending in x; `hue` is the number of its colour, its own by
// default, and what is `faint` stands behind and is not told. `format` and `formatX` write numbers out. Charts of one
// `group` point at the same place; `range` is the part of x that is shown, and `onRange` is told of a part that is drawn.
export function Chart({ title, series, logarithmic = false, format, formatX, dots = false, group, range = null, onRange, ticks = EVEN }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [pointed, setPointed] = useState(null); // an index into the joint table
  const [ready, setReady] = useState(null);
  const shown = series.filter(({ points }) => points.length);
  const hues = shown.map(({ hue }, at) => (hue ?? at) % SERIES.length);
  const shape = shown.map(({ label, faint }, at) => `${label} ${faint} ${hues[at]}`).join("\n") + logarithmic;
  useEffect(() => { library().then((uPlot) => setReady(() => uPlot)); }, []);

  const table = useMemo(() => {
    if (!ready || !shown.length) return null;
    return ready.join(shown.map(({ points }) => [points.map(([x]) => x), points.map(([, y]) => y)]));
  }, [ready, series]);

  useEffect(() => { // a new plot where other curves are to be drawn
    if (!table) return undefined;
    const made = new ready(optionsOf(), table, box.current);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: box.current.clientWidth, height: HEIGHT }));
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
  useEffect(() => {
    if (!table || !plot.current) return;
    plot.current.setData(table, false);
    const [from, to] = range ?? [table[0][0], table[0].at(-1)];
    plot.current.setScale("x", from < to ? { min: from, max: to } : { min: from - 1, max: to + 1 });
  }, [table, range?.[0], range?.[1], formatX]);

  function optionsOf() {
    const line = { stroke: () => colour("--line"), width: 1 };
    // On a logarithmic scale a line for each power of ten is enough.
    const tens = (_, splits) => splits.map((value) => (!logarithmic || Number.isInteger(Math.log10(value)) ? value : null));
    const axis = { stroke: () => colour("--faint"), grid: line, ticks: line, font: "12px system-ui, sans-serif" };
    const drawn = (self) => {
      const { left, width } = self.select;
      if (width < 4) return;
      onRange?.([self.posToVal(left, "x"), self.posToVal(left + width, "x")]);
      self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    };
    return {
      width: box.current.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: {
        y: false,
        points: { size: 7, width: 2, fill: () => colour("--sheet") },
        drag: { x: Boolean(onRange), y: false, setScale: false },
        bind: { dblclick: () => () => { onRange?.(null); return null; } },
        ...(group ? { sync: { key: group, scales: ["x", null] } } : {}),
      },
      scales: { x: { time: false, auto: false }, y: { distr: logarithmic ? 3 : 1 } },
      axes: [
        { ...axis, values: (_, values) => values.map(formatX), space: 60, incrs: ticks },
        { ...axis, grid: { ...line, filter: tens }, ticks: { ...line, filter: tens }, values: (_, values) => values.map((value) => (value == null ? "" : short(value))), size: 58 },
      ],
      series: [{}, ...shown.map((one, at) => ({
        label: one.label,
        stroke: () => colour(SERIES[hues[at]]),
        alpha: one.faint ? 0.3 : 1,
        dash: one.faint ? undefined : DASHES[hues[at]],
        width: one.faint ? 1 : 2,
        spanGaps: true,
        points: { show: dots || one.points.length < 2, size: 6, fill: () => colour("--sheet") },
      }))],
      hooks: { setCursor: [(self) => setPointed(self.cursor.idx ?? null)], setSelect: [drawn] },
    };
  }

  const last = ({ points }) => points[points.length - 1];
  const at = pointed === null || !table || pointed >= table[0].length ? null : pointed;
  const valueAt = (index) => (at === null ? null : table[index + 1][at]);
  const told = shown.map((one, index) => ({ ...one, index })).filter(({ faint }) => !faint);
  const words = told.map((one) => `${one.label} ${format(last(one)[1])} at ${formatX(last(one)[0])}, from ${format(one.points[0][1])}`);
  return html`<figure class="chart">
    <figcaption><h3>${title}</h3><span class="key at">${at === null ? "" : `at ${formatX(table[0][at])}`}</span>
      <span class="keys">
      ${told.map((one) => html`<span class="key" key=${one.label}>
        <i class=${`mark curve-${hues[one.index] + 1}`}></i>${told.length > 1 || one.label !== title ? `${one.label} ` : ""}
        <b>${format(valueAt(one.index) ?? last(one)[1])}</b></span>`)}
      </span>
    </figcaption>
    <div class="plot" ref=${box} role="img" data-from=${range?.[0]} data-to=${range?.[1]} aria-label=${words.length ? `${title}: ${words.join("; ")}` : `${title}: nothing yet`}>
      ${!shown.length && html`<span class="empty">nothing yet</span>`}
    </div>
  </figure>`;
}
