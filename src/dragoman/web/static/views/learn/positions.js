// Where a word stands: the table that is added to the embeddings, and the rotation that a fixed offset is.

import { html, useEffect, useMemo, useRef, useState } from "../../vendor/htm-preact.js";
import { Equation } from "./equations.js";
import { Found } from "./found.js";
import { insideAddress, Lesson, Slider } from "./lesson.js";
import { positions, useFetched } from "./model.js";

const COUNT = 64;
const ROTATES = 0.001; // numbers come in steps of about 0.00003

export function Positions({ frame, seen }) {
  const [at, setAt] = useState(10);
  const [offset, setOffset] = useState(5);
  const [pair, setPair] = useState(4);
  const { source, target } = seen.question;
  const { value, problem } = useFetched(() => positions({ source, target, count: COUNT }), [source, target]);
  const kind = value?.header.kind;
  const width = value?.header.shape[1] ?? seen.d_model;
  const rows = useMemo(() => value && Array.from({ length: COUNT }, (_, row) => Array.from({ length: width }, (_, column) => value.value(row * width + column))), [value]);
  const wrong = useMemo(() => rows && furthestFromRotation(rows, offset), [rows, offset]);
  const frequency = 10000 ** (-(2 * pair) / width);
  const last = COUNT - 1 - offset;
  const here = Math.min(at, last);
  return html`<${Lesson} frame=${frame} equation="rotation"
    link=${insideAddress(seen.question, { kind: "encoder", layer: 0, statistic: "previous" })}
    text=${html`<p>Attention, which comes next, looks at all words at once and would not know “dog bites man” from “man bites dog”. So a second
      vector is added to each: one that only says <em>where</em> the word stands.</p>
      <p>${kind === "learned" ? "This run learned these vectors, one a position." : "In the paper nobody learns it: each pair of numbers is a hand of a clock. The first turns fast, the last hardly at all, and together they are a fingerprint of the position."} A row of the
      picture is a position: choose one, in the picture or by the slider, to read its fingerprint.</p>
      ${kind !== "learned" && html`<${Equation} name="position" />`}
      <p>Why clocks? Moving on by a fixed number of words turns every hand by a fixed angle, wherever one starts. Seven words further is thus the same
      rotation everywhere, which is easy to learn to look for.</p>`}>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${rows && html`
      <${HeatMap} rows=${rows} at=${here} onChoose=${(row) => setAt(Math.min(row, last))} />
      <${Slider} label="Position" value=${here} most=${last} onMove=${setAt} />
      <${Fingerprint} values=${rows[here]} at=${here} />
      <div class="clock-row">
        <${Clock} first=${rows[here].slice(2 * pair, 2 * pair + 2)} second=${rows[here + offset].slice(2 * pair, 2 * pair + 2)} />
        <div>
          <${Slider} label="Offset k" value=${offset} least=${1} most=${32} onMove=${setOffset} />
          <${Slider} label="Hand i" value=${pair} most=${width / 2 - 1} onMove=${setPair} />
          <p class="measures">ω = 10000<sup>−2i/${width}</sup> = <b>${frequency.toPrecision(3)}</b>, so k positions turn
            it by <b data-shown="angle">${(offset * frequency).toFixed(4)}</b> radians</p>
          <p class="measures">${wrong < ROTATES ? "Rotating every row by k gives the row k further on" : "These rows are not rotations of one another"}: off
            by at most <b data-shown="rotation error">${wrong.toFixed(5)}</b></p>
        </div>
      </div>`}
    <${Found} of="positions" notes />
  </${Lesson}>`;
}

// Over all positions and all hands: how far the rotated row is from the row that is there.
function furthestFromRotation(rows, offset) {
  const width = rows[0].length;
  let furthest = 0;
  for (let pair = 0; pair < width / 2; pair += 1) {
    const angle = offset * 10000 ** (-(2 * pair) / width);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    for (let at = 0; at + offset < rows.length; at += 1) {
      const [a, b] = [rows[at][2 * pair], rows[at][2 * pair + 1]];
      const [wantedA, wantedB] = [rows[at + offset][2 * pair], rows[at + offset][2 * pair + 1]];
      furthest = Math.max(furthest, Math.abs(cos * a + sin * b - wantedA), Math.abs(cos * b - sin * a - wantedB));
    }
  }
  return furthest;
}

function HeatMap({ rows, at, onChoose }) {
  const canvas = useRef(null);
  useEffect(() => {
    const draw = () => {
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
      const [low, middle, high] = [colour("--curve-2"), colour("--sheet"), colour("--curve-1")];
      const most = Math.max(...rows.map((row) => Math.max(...row.map(Math.abs)))) || 1;
      const image = new ImageData(rows[0].length, rows.length);
      rows.forEach((row, y) => row.forEach((value, x) => {
        const share = Math.abs(value) / most;
        const end = value < 0 ? low : high;
        for (let part = 0; part < 3; part += 1) image.data[4 * (y * row.length + x) + part] = middle[part] + (end[part] - middle[part]) * share;
        image.data[4 * (y * row.length + x) + 3] = 255;
      }));
      canvas.current.width = image.width;
      canvas.current.height = image.height;
      canvas.current.getContext("2d").putImageData(image, 0, 0);
    };
    draw();
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", draw);
    return () => { theme.disconnect(); system.removeEventListener("change", draw); };
  }, [rows]);
  const under = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    onChoose(Math.max(0, Math.min(rows.length - 1, Math.floor((rows.length * (event.clientY - box.top)) / box.height))));
  };
  return html`<div class="position-map" role="img" aria-label=${`${rows.length} positions by ${rows[0].length} numbers, from −1 to 1`}
    onClick=${under} onPointerMove=${(event) => { if (event.buttons && event.pointerType === "mouse") under(event); }}>
    <canvas ref=${canvas}></canvas>
    <i class="at" style=${{ top: `${(100 * at) / rows.length}%`, height: `${100 / rows.length}%` }}></i>
  </div>`;
}

function Fingerprint({ values, at }) {
  const step = 400 / values.length;
  return html`<svg class="fingerprint" viewBox="0 0 400 60" preserveAspectRatio="none" role="img"
    aria-label=${`Fingerprint of position ${at}: ${values.slice(0, 4).map((value) => value.toFixed(2)).join(", ")} …`} data-values=${values.map((value) => value.toFixed(3)).join(" ")}>
    <line x1="0" x2="400" y1="30" y2="30" />
    ${values.map((value, index) => html`<rect key=${index} x=${index * step} width=${Math.max(0.5, step * 0.85)} y=${value >= 0 ? 30 - 28 * value : 30} height=${Math.abs(28 * value)} class=${value < 0 ? "curve-2" : "curve-1"} />`)}
  </svg>`;
}

function Clock({ first, second }) {
  const end = ([sin, cos]) => [60 + 50 * sin, 60 - 50 * cos];
  const [[x1, y1], [x2, y2]] = [end(first), end(second)];
  return html`<svg class="clock-face" viewBox="0 0 120 120" role="img" aria-label="The hand at the position, and k positions further on">
    <circle cx="60" cy="60" r="50" />
    <line class="curve-1" x1="60" y1="60" x2=${x1} y2=${y1} /><line class="curve-2" x1="60" y1="60" x2=${x2} y2=${y2} />
    <circle class="end curve-1" cx=${x1} cy=${y1} r="4" /><circle class="end curve-2" cx=${x2} cy=${y2} r="4" />
  </svg>`;
}
