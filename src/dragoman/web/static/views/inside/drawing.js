// What the pictures share: colours that follow the theme, widths that follow the window, cells as pixels.

import { useEffect, useRef, useState } from "../../vendor/htm-preact.js";

const STEPS = 1024;
const LONG = 40; // columns, beyond which weights are spread so thin that only their roots can be told from nothing

export const isRooted = (columns) => columns > LONG;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  const rgb = (name) => [1, 3, 5].map((at) => parseInt(named(name).slice(at, at + 2), 16));
  const [low, high] = [rgb("--heat-low"), rgb("--heat-high")];
  const scaled = (share) => Uint32Array.from({ length: STEPS }, (_, step) => {
    const [red, green, blue] = low.map((from, at) => Math.round(from + (high[at] - from) * share(step / (STEPS - 1))));
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
  return { scale: scaled((weight) => weight), rooted: scaled(Math.sqrt), line: named("--heat-high"), ink: named("--ink"), faint: named("--faint"), mark: named("--lit-line"), edge: named("--line") };
}

export function useColours() {
  const [colours, setColours] = useState(readColours);
  useEffect(() => {
    const again = () => setColours(readColours());
    const observer = new MutationObserver(again);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    return () => { observer.disconnect(); dark.removeEventListener("change", again); };
  }, []);
  return colours;
}

export function useWidth() {
  const element = useRef(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

// The canvas in device pixels, its context in CSS pixels.
export function prepare(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// One pixel a weight, to be stretched: this is what keeps 200 × 200 tokens fluent.
export function pixels(head, colours) {
  const canvas = document.createElement("canvas");
  canvas.width = head.columns;
  canvas.height = head.rows;
  const image = new ImageData(head.columns, head.rows);
  const cells = new Uint32Array(image.data.buffer);
  const scale = isRooted(head.columns) ? colours.rooted : colours.scale;
  for (let at = 0; at < cells.length; at += 1) cells[at] = scale[head.steps[at] >> 6];
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export const FONT = '13px ui-sans-serif, system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
export const short = (label, most = 18) => (label.length > most ? `${label.slice(0, most - 1)}…` : label);
