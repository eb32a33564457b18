// What else the model would say in one place, how probable each is; a choice is followed by a new rest.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/htm-preact.js";
import { percent } from "./words.js";

export function Alternatives({ area, open, translation, onClose }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const [active, setActive] = useState(0);
  const [choosing, setChoosing] = useState(false);
  const box = useRef(null);
  const now = translation.segments[open.segment].explanation.target_words[open.word].text;

  useEffect(() => {
    let wanted = true;
    translation.choices(open.segment, open.word).then(
      (choices) => wanted && setFound(choices),
      (error) => wanted && setProblem(error.message),
    );
    return () => { wanted = false; };
  }, []);
  useEffect(() => box.current?.focus(), []);
  useLayoutEffect(() => place(box.current, area.current, open), [found]);
  useEffect(() => {
    const outside = (event) => !box.current?.contains(event.target) && !event.target.closest?.("[role=button]") && onClose(false);
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);

  const choose = async (choice) => {
    if (choice.text === now) return onClose();
    setChoosing(true);
    try {
      await translation.choose(open.segment, open.word, choice);
      onClose();
    } catch (error) {
      setProblem(error.message);
      setChoosing(false);
    }
  };
  const onKey = (event) => {
    const count = found?.length ?? 0;
    if (event.key === "ArrowDown") setActive((active + 1) % Math.max(1, count));
    else if (event.key === "ArrowUp") setActive((active + count - 1) % Math.max(1, count));
    else if (event.key === "Home") setActive(0);
    else if (event.key === "End") setActive(count - 1);
    else if ((event.key === "Enter" || event.key === " ") && count) choose(found[active]);
    else if (event.key === "Escape" || event.key === "Tab") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return html`<div class="alternatives" role="listbox" tabindex="-1" ref=${box} aria-label=${`In place of “${now}”`}
    aria-activedescendant=${found?.length ? `choice-${active}` : undefined} aria-busy=${found ? "false" : "true"} onKeyDown=${onKey}>
    ${!found && !problem && html`<div class="note" role="option" aria-selected="false" aria-disabled="true">Asking the model …</div>`}
    ${problem && html`<div class="note problem" role="option" aria-selected="false" aria-disabled="true">${problem}</div>`}
    ${found && !found.length && html`<div class="note" role="option" aria-selected="false" aria-disabled="true">Only the end can follow.</div>`}
    ${found?.map((choice, index) => html`<div role="option" id=${`choice-${index}`} aria-selected=${index === active ? "true" : "false"}
      class=${choice.text === now ? "option now" : "option"} onClick=${() => choose(choice)} onMouseEnter=${() => setActive(index)}>
      <span class="said">${choice.text}</span>
      <meter class="chance" min="0" max="1" value=${choice.probability} aria-hidden="true"></meter>
      <span class="share">${percent(choice.probability)}</span>
    </div>`)}
    ${choosing && html`<div class="note" role="option" aria-selected="false" aria-disabled="true">Translating the rest …</div>`}
  </div>`;
}

// Under the word, within the pane.
function place(box, area, { segment, word }) {
  const anchor = area?.querySelector(`[role=button][data-segment="${segment}"][data-word="${word}"]`);
  if (!box || !anchor) return;
  const [inside, at] = [area.getBoundingClientRect(), anchor.getBoundingClientRect()];
  const left = Math.min(at.left - inside.left, inside.width - box.offsetWidth - 8);
  box.style.left = `${Math.max(0, left)}px`;
  box.style.top = `${at.bottom - inside.top + 6}px`;
}
