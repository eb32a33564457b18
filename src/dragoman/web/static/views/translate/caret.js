// The caret of the translation's field: the sentence and the word that it is in, the menu that opens there, and what typing
// changes.

import { useEffect, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { editsOf, sentenceAt, wordBefore } from "./editing.js";
import { useMenu } from "./menu.js";

const PAUSE = 350; // milliseconds without a key before the model is asked how it goes on

export function useCaret({ translation, shown, area, field, current, onCurrent, onPoint, onLeave }) {
  const { segments, state } = translation;
  const [at, setAt] = useState(null); // what the menu is for
  const caret = useRef(null); // where it goes when what is shown has changed
  const timer = useRef(0);
  const close = () => { clearTimeout(timer.current); setAt(null); };
  useLayoutEffect(close, [segments.length, state]); // an effect could close what was opened since
  useEffect(() => () => clearTimeout(timer.current), []);
  useLayoutEffect(() => {
    if (caret.current === null) return;
    const { segment, position } = caret.current;
    const spot = (shown.places[segment]?.start ?? 0) + position;
    field.current.setSelectionRange(spot, spot);
    caret.current = null;
  }, [shown.text]);
  useEffect(() => { // the summary leads to a sentence
    if (!current?.goTo || !shown.places[current.segment]) return;
    const { start, end } = shown.places[current.segment];
    field.current.focus({ preventScroll: true });
    field.current.setSelectionRange(start, end);
    area.current.querySelector(`[data-sentence="${current.segment}"]`)?.scrollIntoView({ block: "center" });
  }, [current]);

  const menu = useMenu(translation, at, (taken) => {
    caret.current = taken;
    close();
    if (taken) field.current.focus();
  });

  const leaveFor = (segment) => {
    if (current && current.segment !== segment) onLeave(current.segment);
    if (current?.segment !== segment) onCurrent(segment < 0 ? null : { segment });
  };
  const wordAt = (segment, position) => (segments[segment]?.explanation?.target_words ?? []).findIndex(({ start, end }) => start <= position && position <= end);
  // Where the caret is: its sentence becomes the current one, the word there is lit.
  const follow = () => {
    const { selectionStart: start, selectionEnd: end } = field.current;
    const segment = sentenceAt(shown.places, start);
    leaveFor(segment);
    const word = segment < 0 ? -1 : wordAt(segment, start - shown.places[segment].start);
    onPoint(word < 0 ? null : { side: "target", segment, word });
    return start === end && word >= 0 ? { segment, word } : null;
  };
  const open = () => {
    const found = follow();
    setAt(found && segments[found.segment].tokens && state === "done" ? found : null);
  };
  const typed = (event) => {
    const { value, selectionStart: position } = event.target;
    const edits = editsOf(shown, value, position);
    close();
    caret.current = null;
    if (!edits.length) { // what stands between sentences is the source's
      event.target.value = shown.text;
      event.target.setSelectionRange(Math.min(position, shown.text.length), Math.min(position, shown.text.length));
      return;
    }
    edits.forEach((edit) => translation.type(edit.at, edit.text));
    const { at: segment, text } = edits[0];
    leaveFor(segment);
    const inside = position - shown.places[segment].start;
    if (edits.length > 1) caret.current = { segment, position: inside };
    else timer.current = setTimeout(() => setAt({ segment, position: inside, ...wordBefore(text, inside) }), PAUSE);
  };
  const onKey = (event) => {
    if (at && menu.onKey(event)) return;
    if ((event.altKey && event.key === "ArrowDown") || (event.ctrlKey && event.key === " ")) {
      event.preventDefault();
      open();
    }
  };
  const moved = (event) => { // keys that move the caret
    if (!/^(Arrow|Home|End|Page)/.test(event.key) || event.altKey || (at && /^Arrow(Up|Down)$/.test(event.key))) return;
    close();
    follow();
  };
  const pointed = (event) => {
    const found = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.classList?.contains("word"));
    onPoint(found ? { side: "target", segment: Number(found.dataset.segment), word: Number(found.dataset.word) } : null);
    const sentence = found ?? document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.dataset?.sentence);
    if (sentence?.dataset.sentence && !segments[sentence.dataset.sentence]?.explanation) translation.look(Number(sentence.dataset.sentence));
    field.current.title = found?.dataset.said ?? "";
  };

  return {
    at,
    menu,
    handlers: {
      onInput: typed,
      onClick: open,
      onKeyDown: onKey,
      onKeyUp: moved,
      onMouseMove: pointed,
      onMouseLeave: () => onPoint(null),
      onBlur: () => { close(); onPoint(null); if (current) onLeave(current.segment); },
    },
  };
}
