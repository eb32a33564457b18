// The margin of the translation: a bar for each sentence, from where it begins to where it ends, tinted by how probably
// it is good. A line of several sentences is divided among their bars as it is among them.

import { html, useLayoutEffect, useState } from "../../vendor/htm-preact.js";
import { doubtOf, saidOf } from "./trust.js";

export function Margin({ area, segments, current, onChoose }) {
  const [bars, setBars] = useState([]);
  useLayoutEffect(() => {
    const measure = () => setBars(barsOf(area.current, segments));
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(area.current);
    return () => resized.disconnect();
  }, [segments]);
  return html`<div class="margin" aria-hidden="true">
    ${bars.map(({ at, top, height }) => {
      const { confidence } = segments[at] ?? {};
      if (!segments[at]) return null;
      const classes = ["bar-of", confidence === null || segments[at].changed ? "" : "rated", doubtOf(segments[at]) ? "doubtful" : "", at === current ? "current" : ""];
      return html`<div key=${at} class=${classes.filter(Boolean).join(" ")} data-bar=${at} data-confidence=${confidence ?? ""}
        title=${saidOf(segments[at], at, segments.length)} onClick=${() => onChoose(at)}
        style=${{ top: `${top}px`, height: `${height}px`, "--p": confidence ?? 0 }}></div>`;
    })}
  </div>`;
}

function barsOf(area, segments) {
  if (!area) return [];
  const frame = area.getBoundingClientRect();
  const line = parseFloat(getComputedStyle(area).lineHeight);
  const padding = parseFloat(getComputedStyle(area).paddingLeft);
  const width = frame.width - 2 * padding;
  // A place in the text as a height: down its line as far as it is along it.
  const heightAt = (rect, x) => {
    const middle = (rect.top + rect.bottom) / 2 - frame.top;
    return middle - line / 2 + line * Math.min(1, Math.max(0, (x - frame.left - padding) / width));
  };
  return segments.flatMap((_, at) => {
    const rects = area.querySelector(`[data-sentence="${at}"]`)?.getClientRects();
    if (!rects?.length) return [];
    const [first, last] = [rects[0], rects[rects.length - 1]];
    const isLast = at + 1 === segments.length || last.bottom + 2 < (area.querySelector(`[data-sentence="${at + 1}"]`)?.getClientRects()[0]?.bottom ?? Infinity);
    const top = heightAt(first, first.left <= frame.left + padding + 2 ? -Infinity : first.left);
    const bottom = isLast ? heightAt(last, Infinity) : heightAt(last, last.right);
    return [{ at, top: top + 1, height: Math.max(3, bottom - top - 2) }];
  });
}
