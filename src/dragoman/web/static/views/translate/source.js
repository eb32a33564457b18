// The text to translate. Behind the text field lies the same text, invisible, whose words can be lit.

import { html, useRef } from "../../vendor/htm-preact.js";
import { charactersOf, excess, lightOf, number } from "./words.js";

export function SourcePane({ text, limit, language, segments, lit, onText, onPoint, onClear, input, children }) {
  const behind = useRef(null);
  const over = excess(text, limit);

  const wordUnder = (event) => {
    const found = document.elementsFromPoint(event.clientX, event.clientY).find((element) => element.dataset?.word);
    onPoint(found ? { side: "source", segment: Number(found.dataset.segment), word: Number(found.dataset.word) } : null);
  };
  const wordAtCaret = (event) => {
    const at = event.target.selectionStart;
    const segment = segments.findIndex(({ start, end }) => start <= at && at <= end);
    const words = segments[segment]?.explanation?.source_words ?? [];
    const inside = at - (segments[segment]?.start ?? 0);
    const word = words.findIndex(({ start, end }) => start <= inside && inside <= end);
    onPoint(word < 0 ? null : { side: "source", segment, word });
  };

  return html`<div class="pane">
    <div class="writing">
      <div class="behind" ref=${behind} aria-hidden="true">${wordsBehind(text, segments, lit)}${"\u200b"}</div>
      <textarea ref=${input} value=${text} lang=${language === "auto" ? undefined : language} dir="auto" spellcheck="false" autofocus
        placeholder="Type or paste text" aria-label="Text to translate" aria-describedby="source-note"
        aria-invalid=${over > 0 ? "true" : undefined}
        onInput=${(event) => onText(event.target.value)} onMouseMove=${wordUnder} onMouseLeave=${() => onPoint(null)}
        onKeyUp=${wordAtCaret} onBlur=${() => onPoint(null)}></textarea>
    </div>
    <div class="actions">
      <button type="button" class="quiet" onClick=${onClear} disabled=${!text}>Clear</button>
      ${children}
      <span id="source-note" class=${over > 0 ? "count problem" : "count"} aria-live=${over > 0 ? "polite" : "off"}>
        ${over > 0
          ? `${number(charactersOf(text))} characters; at most ${number(limit)} are translated at once: leave out ${number(over)}`
          : `${number(charactersOf(text))} / ${number(limit)}`}
      </span>
    </div>
  </div>`;
}

function wordsBehind(text, segments, lit) {
  const pieces = [];
  let position = 0;
  segments.forEach((segment, at) => {
    if (!segment.explanation || text.slice(segment.start, segment.end) !== segment.source) return;
    segment.explanation.source_words.forEach((word, index) => {
      const [start, end] = [segment.start + word.start, segment.start + word.end];
      const light = lit.segment === at ? lightOf(lit.source, index) : "";
      pieces.push(text.slice(position, start));
      pieces.push(html`<span class=${light} data-segment=${at} data-word=${index}>${text.slice(start, end)}</span>`);
      position = end;
    });
  });
  return [...pieces, text.slice(position)];
}
