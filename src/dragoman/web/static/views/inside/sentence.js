// The sentence that is looked into, and its translation, which may be typed over.

import { html, useState } from "../../vendor/htm-preact.js";
import { chooseLanguages, Languages } from "../translate/languages.js";
import { writeState } from "./state.js";

export function Sentence({ about, data, state, seen, working, change }) {
  const another = (changes) => change({ ...changes, row: 0, column: -1, at: -1, instead: "", token: "", changes: [], ranked: false });
  if (data.saved) return html`<section class="sheet sentence"><p class="given">${seen?.text}</p></section>`;
  return html`<section class="sheet sentence" aria-label="Sentence">
    <${Languages} about=${about} chosen=${{ source: state.from, target: state.to }} detected=${null}
      onChoose=${(from, to) => { const { source, target } = chooseLanguages(about, from, to); another({ from: source, to: target, sentence: 0, translation: "" }); }}
      onSwap=${() => another({ from: state.to, to: state.from, text: seen?.translation ?? state.text, sentence: 0, translation: "" })} />
    <div class="pair">
      <label class="field wide">Text
        <input type="text" value=${state.text} lang=${state.from} dir="auto" maxlength=${about.character_limit} placeholder="Type a sentence" autofocus
          onInput=${(event) => another({ text: event.target.value, sentence: 0, translation: "" })} /></label>
      <${TranslationField} about=${about} state=${state} seen=${seen} onGive=${(translation) => another({ translation })} />
    </div>
    <div class="actions">
      ${seen && seen.sentences.length > 1 && html`<label class="field">Sentence <select value=${seen.sentence}
        onChange=${(event) => another({ sentence: Number(event.target.value), translation: "" })}>
        ${seen.sentences.map((one, at) => html`<option value=${at}>${at + 1}. ${one.slice(0, 40)}</option>`)}</select></label>`}
      ${state.translation && html`<button type="button" class="quiet" onClick=${() => another({ translation: "" })}>The model’s own translation</button>`}
      <span class="note" aria-live="polite">${working ? "Looking …" : ""}</span>
      ${seen && html`<${SaveButton} data=${data} seen=${seen} state=${state} />`}
    </div>
    ${!state.text.trim() && html`<p class="note">Type a sentence: it is translated, and every head of the model is shown at work on it.</p>`}
  </section>`;
}

// It is looked into as it is typed. What is typed stays in the field as it is, also where nothing is left of it: then the
// model's own translation is looked into, and stands there again when the field is left.
function TranslationField({ about, state, seen, onGive }) {
  const [typed, setTyped] = useState(null);
  const type = (event) => {
    setTyped(event.target.value);
    const given = event.target.value.trim();
    if (given !== state.translation) onGive(given);
  };
  return html`<label class="field wide">Translation
    <input type="text" value=${typed ?? (state.translation || seen?.translation || "")} lang=${state.to} dir="auto" maxlength=${about.character_limit}
      placeholder="Empty: the model’s own" disabled=${!seen && typed === null} onInput=${type} onBlur=${() => setTyped(null)} /></label>`;
}

function SaveButton({ data, seen, state }) {
  const [said, setSaid] = useState("");
  const save = async () => {
    setSaid("Saving …");
    try {
      const address = URL.createObjectURL(await data.page({ ...seen.question, changes: state.changes }, writeState(state)));
      const link = document.createElement("a");
      link.href = address;
      link.download = "inside.html";
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      setSaid("Saved");
    } catch (error) {
      setSaid(error.message);
    }
    setTimeout(() => setSaid(""), 4000);
  };
  return html`<button type="button" class="quiet save" onClick=${save}><span aria-live="polite">${said || "Save as one HTML file"}</span></button>`;
}
