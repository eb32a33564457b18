// What the model would say at the caret: in place of the word there, or after what was typed. The caret stays in the text,
// so that one may go on typing; the arrows choose, Enter or Tab takes, Escape closes.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { percent } from "./words.js";

const REST = 60; // characters of the rest of a sentence that are shown

// What there is to choose where the caret is. `at`: {segment, word} for the words in place of one that stands there, or
// {segment, position} after something was typed up to there, counted in the sentence.
export function useMenu(translation, at, onTaken) {
  const [found, setFound] = useState(null); // {options, problem}; null: the model is being asked
  const [active, setActive] = useState(-1);
  const [taking, setTaking] = useState(false);
  const key = at && JSON.stringify([at.segment, at.word, at.position, translation.segments[at.segment]?.source]);
  useEffect(() => {
    setFound(null);
    setActive(-1);
    setTaking(false);
    if (!at) return undefined;
    const control = new AbortController();
    const ask = at.word === undefined ? completions : replacements;
    ask(translation, at, control.signal).then(
      (options) => setFound({ options, problem: "" }),
      (error) => error.name !== "AbortError" && setFound({ options: [], problem: error.message }),
    );
    return () => control.abort();
  }, [key]);

  const options = found?.options ?? [];
  const take = async (option) => {
    if (option.isNow) return onTaken(null);
    setTaking(true);
    try {
      const explanation = option.explanation ?? (await translation.continued(at.segment, option.beginning));
      translation.choose(at.segment, explanation, option.beginning.prefix ?? explanation.tokens);
      const text = explanation.target;
      onTaken({ segment: at.segment, position: option.isRest ? text.length : Math.min(text.length, option.caret) });
    } catch (error) {
      setFound({ options, problem: error.message });
    }
    setTaking(false);
    return undefined;
  };
  // Whether the key was for the menu.
  const onKey = (event) => {
    const count = options.length;
    if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return false;
    if (event.key === "Escape") onTaken(null);
    else if (event.key === "ArrowDown" && count) setActive((active + 1) % count);
    else if (event.key === "ArrowUp" && count) setActive((Math.max(active, 0) + count - 1) % count);
    else if ((event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) && active >= 0) take(options[active]);
    else return false;
    event.preventDefault();
    return true;
  };
  return { found, options, active, setActive, take, taking, onKey };
}

async function replacements(translation, { segment, word }, signal) {
  const { tokens, explanation } = translation.segments[segment];
  const { first_token: first, text: now, start } = explanation.target_words[word];
  const before = tokens.slice(0, first);
  const words = await translation.choices(segment, { prefix: before }, signal);
  return words.map(({ text, probability, tokens: own }) => (
    { text, probability, isNow: text === now, beginning: { prefix: [...before, ...own] }, caret: start + text.length }
  ));
}

// The words that go on from what is typed, and the rest of the sentence as the model would end it.
async function completions(translation, { segment, position, start, begun }, signal) {
  const text = translation.segments[segment].text;
  const [before, typed] = [text.slice(0, start), text.slice(0, position)];
  const words = await translation.choices(segment, { prefix_text: before }, signal);
  const fitting = words.filter(({ text: word }) => word.toLowerCase().startsWith(begun.toLowerCase()) && word !== begun);
  const options = fitting.slice(0, 4).map(({ text: word, probability }) => (
    { text: word, probability, beginning: { prefix_text: before + word }, caret: start + word.length }
  ));
  if (!typed.trim()) return options;
  const explanation = await translation.continued(segment, { prefix_text: typed }, signal);
  const rest = explanation.target.startsWith(typed.trimStart()) ? explanation.target.slice(typed.trimStart().length) : "";
  if (!rest.trim() || explanation.target === text) return options;
  const shown = rest.length > REST ? `${rest.slice(0, REST)} …` : rest;
  return [...options, { text: `…${shown}`, isRest: true, explanation, beginning: { prefix: null } }];
}

export function Menu({ menu, at, area, label }) {
  const box = useRef(null);
  const { found, options, active, setActive, take, taking } = menu;
  useLayoutEffect(() => place(box.current, area.current, at), [found, at]);
  const note = (words, kind = "") => html`<div class=${`note ${kind}`} role="option" aria-selected="false" aria-disabled="true">${words}</div>`;
  return html`<div class="alternatives" role="listbox" id="caret-menu" ref=${box} aria-label=${label} aria-busy=${found ? "false" : "true"}
    onPointerDown=${(event) => event.preventDefault()}>
    ${!found && note("Asking the model …")}
    ${found?.problem && note(found.problem, "problem")}
    ${found && !options.length && !found.problem && note("Nothing else can stand here.")}
    ${options.map((option, index) => html`<div role="option" key=${index} id=${`choice-${index}`} aria-selected=${index === active ? "true" : "false"}
      class=${["option", option.isNow && "now", option.isRest && "rest"].filter(Boolean).join(" ")} onClick=${() => take(option)} onMouseMove=${(event) => (event.movementX || event.movementY) && setActive(index)}>
      <span class="said">${option.text}</span>
      ${!option.isRest && html`<meter class="chance" min="0" max="1" value=${option.probability} aria-hidden="true"></meter>
      <span class="share">${percent(option.probability)}</span>`}
    </div>`)}
    ${taking && note("Translating the rest …")}
  </div>`;
}

// Under the word, or the sentence's last line, within the pane.
function place(box, area, at) {
  const anchor = area?.querySelector(at.word === undefined ? `[data-sentence="${at.segment}"]` : `.word[data-segment="${at.segment}"][data-word="${at.word}"]`);
  if (!box || !anchor) return;
  const inside = area.getBoundingClientRect();
  const spot = at.word === undefined ? caretIn(anchor, at.position) : anchor.getBoundingClientRect();
  const left = Math.min(spot.left - inside.left, inside.width - box.offsetWidth - 8);
  box.style.left = `${Math.max(0, left)}px`;
  box.style.top = `${spot.bottom - inside.top + 6}px`;
}

// Where a place in a sentence stands on the page.
function caretIn(sentence, position) {
  const walker = document.createTreeWalker(sentence, NodeFilter.SHOW_TEXT);
  let left = position;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (left <= node.length) {
      const range = document.createRange();
      range.setStart(node, Math.max(0, left - 1));
      range.setEnd(node, left);
      const rects = range.getClientRects();
      return rects[rects.length - 1] ?? sentence.getBoundingClientRect();
    }
    left -= node.length;
  }
  return sentence.getBoundingClientRect();
}
