// The text to translate. Behind the text field lies the same text, invisible, whose words can be lit and struck through.

import { html, useRef, useState } from "../../vendor/htm-preact.js";
import { lostIn } from "./trust.js";
import { charactersOf, excess, lightOf, number } from "./words.js";

const LONGEST_TERM = 200; // characters

export function SourcePane({ text, limit, language, segments, lit, onText, onPoint, onClear, onUndoClear, onTerm, examples, input, children }) {
  const behind = useRef(null);
  const [selected, setSelected] = useState("");
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
  const select = (event) => {
    const chosen = event.target.value.slice(event.target.selectionStart, event.target.selectionEnd).trim();
    setSelected(chosen.length <= LONGEST_TERM && !chosen.includes("\n") ? chosen : "");
  };
  const offer = () => {
    onTerm({ source: selected, target: translationOf(segments, input.current.selectionStart, input.current.selectionEnd) });
    setSelected("");
  };

  return html`<div class="pane">
    <div class="writing">
      <div class="behind" ref=${behind} aria-hidden="true">${wordsBehind(text, segments, lit)}${"\u200b"}</div>
      <textarea ref=${input} value=${text} lang=${language === "auto" ? undefined : language} dir="auto" spellcheck=${false} autofocus
        placeholder="Type or paste text, or drop a file" aria-label="Text to translate" aria-describedby="source-note"
        aria-invalid=${over > 0 ? "true" : undefined}
        onInput=${(event) => onText(event.target.value)} onMouseMove=${wordUnder} onMouseLeave=${() => onPoint(null)} onSelect=${select}
        onKeyUp=${wordAtCaret} onBlur=${() => onPoint(null)}></textarea>
    </div>
    ${!text && examples.length > 0 && html`<div class="examples" role="group" aria-label="Examples">
      <span class="hint">For example</span>${examples.map((one) => html`<button type="button" class="example" key=${one.text} lang=${one.language} dir="auto" onClick=${() => onText(one.text)}>${one.text}</button>`)}</div>`}
    <div class="actions">
      ${!text && onUndoClear
        ? html`<button type="button" class="quiet" onClick=${onUndoClear}>Undo clear</button>`
        : html`<button type="button" class="quiet" onClick=${onClear} disabled=${!text}>Clear</button>`}
      ${children}
      ${selected && text && html`<button type="button" class="quiet term" onPointerDown=${(event) => event.preventDefault()} onClick=${offer}>Add “${selected.length > 24 ? `${selected.slice(0, 24)}…` : selected}” to the glossary</button>`}
      <span id="source-note" class=${over > 0 ? "count problem" : "count"} aria-live=${over > 0 ? "polite" : "off"}>
        ${over > 0
          ? `${number(charactersOf(text))} characters; at most ${number(limit)} are translated at once: leave out ${number(over)}`
          : `${number(charactersOf(text))} / ${number(limit)}`}
      </span>
    </div>
  </div>`;
}

// What a selected stretch of the text became, by the alignment.
function translationOf(segments, from, to) {
  const segment = segments.find(({ start, end }) => start <= from && to <= end);
  if (!segment?.explanation) return "";
  const { source_words: words, target_words: targets, links } = segment.explanation;
  const inside = new Set(words.flatMap(({ start, end }, at) => (segment.start + start < to && segment.start + end > from ? [at] : [])));
  const linked = [...new Set(links.filter(([, source]) => inside.has(source)).map(([target]) => target))].sort((one, other) => one - other);
  return linked.map((target) => targets[target].text).join(" ").replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
}

// Each stretch of the text that is a word that can be lit, or was not carried over, or both.
function wordsBehind(text, segments, lit) {
  const pieces = [];
  let position = 0;
  segments.forEach((segment, at) => {
    if (text.slice(segment.start, segment.end) !== segment.source) return;
    const words = segment.explanation?.source_words ?? [];
    const lost = lostIn(segment);
    const cuts = [...new Set([...words, ...lost].flatMap(({ start, end }) => [start, end]))].sort((one, other) => one - other);
    cuts.slice(0, -1).forEach((start, cut) => {
      const end = cuts[cut + 1];
      const holds = (one) => one.start <= start && end <= one.end;
      const index = words.findIndex(holds);
      const isLost = lost.some(holds);
      if (index < 0 && !isLost) return;
      const classes = [lit.segment === at && index >= 0 ? lightOf(lit.source, index) : "", isLost ? "lost" : ""].filter(Boolean).join(" ");
      pieces.push(text.slice(position, segment.start + start));
      pieces.push(html`<span class=${classes} data-segment=${at} data-word=${index < 0 ? undefined : index}>${text.slice(segment.start + start, segment.start + end)}</span>`);
      position = segment.start + end;
    });
  });
  return [...pieces, text.slice(position)];
}
