// Two panes: what is typed on the left, its translation on the right, and below it how the translation was found.

import { html, useCallback, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { addressOf, readAddress, replaceAddress } from "../router.js";
import { needsModel } from "./needs-model.js";
import { BeamPanel } from "./translate/beam.js";
import { chooseLanguages, Languages, wayOf } from "./translate/languages.js";
import { CopyButton, Snippets } from "./translate/copying.js";
import { FileButton, FilePanel, useFile } from "./translate/file.js";
import { SourcePane } from "./translate/source.js";
import { TargetPane } from "./translate/target.js";
import { Corrections, Legend } from "./translate/trust.js";
import { useTranslation } from "./translate/translation.js";
import { charactersOf, excess, number } from "./translate/words.js";

export const TranslateView = needsModel(Translator);

function Translator({ about, values }) {
  const [text, setText] = useState(values.text ?? "");
  const [languages, setLanguages] = useState(() => chooseLanguages(about, values.from, values.to, true));
  const [pointed, setPointed] = useState(null); // {side, segment, word}: what the pointer, focus or caret is on
  const translation = useTranslation(about, text, languages);
  const file = useFile(about, languages);
  const source = useRef(null);

  useLayoutEffect(() => {
    replaceAddress("translate", { from: languages.source, to: languages.target, text });
  }, [text, languages]);
  useLayoutEffect(() => { // the address was changed by hand, or by the browser's way back
    const { values: wanted } = readAddress();
    if (wanted.text !== undefined && wanted.text !== text) setText(wanted.text);
    if (wanted.from || wanted.to) setLanguages(chooseLanguages(about, wanted.from, wanted.to, true));
  }, [values.text, values.from, values.to]);
  // When another text stands there, and not when more is known of it. An effect could come after the next key and undo it.
  const written = translation.segments.map((segment) => `${segment.start} ${segment.text}`).join("\n");
  useLayoutEffect(() => setPointed(null), [written]);

  const lit = useMemo(() => litWords(translation.segments, pointed), [translation.segments, pointed]);
  const swap = useCallback(() => {
    setText(translation.text || text);
    setLanguages(chooseLanguages(about, languages.target, languages.source, true));
    source.current?.focus();
  }, [translation.text, text, languages]);
  const clear = () => {
    setText("");
    source.current?.focus();
  };
  const dropped = (event) => { // else the browser would show the file in place of this page
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    file.start(event.dataTransfer.files[0]);
  };
  const link = () => location.origin + location.pathname + addressOf("translate", { from: languages.source, to: languages.target, text });
  const over = excess(text, about.character_limit);
  const isPivoted = Boolean(wayOf(about, translation.languages)?.pivot); // there is no one model to look into
  const asked = { text, source: languages.source, target: languages.target };

  return html`
    <h1 class="unseen">Translate</h1>
    <section class="sheet" aria-label="Translate" onDragOver=${(event) => event.preventDefault()} onDrop=${dropped}>
      <${Languages} about=${about} chosen=${languages} detected=${translation.detected} pivoting
        onChoose=${(from, to) => setLanguages(chooseLanguages(about, from, to, true))} onSwap=${swap} />
      <div class="panes">
        <${SourcePane} text=${text} limit=${about.character_limit} language=${languages.source} segments=${translation.segments}
          lit=${lit} onText=${setText} onPoint=${setPointed} onClear=${clear} input=${source}>
          <${FileButton} formats=${about.file_formats} onFile=${file.start} />
        </${SourcePane}>
        <${TargetPane} translation=${translation} lit=${lit} language=${languages.target} onPoint=${setPointed}
          tooLong=${over > 0 && html`<${TooLong} text=${text} limit=${about.character_limit} onFile=${file.start} />`}
          legend=${html`<${Legend} about=${about} translation=${translation} />`}>
          <${CopyButton} what="Copy" done="Copied" content=${() => translation.text}
            disabled=${!translation.text || translation.state === "failed"} />
          <${CopyButton} what="Copy link" done="Link copied" content=${link} disabled=${!text} />
          ${translation.text && !isPivoted && html`<a class="quiet" href=${addressOf("inside", { from: translation.languages.source, to: languages.target, text })}>Look inside</a>`}
          <${Snippets} asked=${asked} keyRequired=${about.key_required} />
        </${TargetPane}>
      </div>
    </section>
    <${FilePanel} ...${file} />
    <${Corrections} about=${about} translation=${translation} />
    ${!isPivoted && html`<${BeamPanel} about=${about} translation=${translation} />`}
  `;
}

// A text over the limit is not translated as it is typed, but as a file it is.
function TooLong({ text, limit, onFile }) {
  const over = excess(text, limit);
  return html`<p class="problem" role="status">
    Nothing is translated: the text has ${number(charactersOf(text))} characters, and at most ${number(limit)} are translated as
    they are typed. Leave out ${number(over)}, or
    <button type="button" onClick=${() => onFile(new File([text], "text.txt"))}>Translate it as a file</button>
  </p>`;
}

// The pointed word itself, and those it is linked to, on both sides of its sentence.
function litWords(segments, pointed) {
  const lit = { segment: -1, source: new Map(), target: new Map() };
  const explanation = pointed && segments[pointed.segment]?.explanation;
  if (!explanation || pointed.word < 0) return lit;
  lit.segment = pointed.segment;
  lit[pointed.side].set(pointed.word, "own");
  for (const [target, source] of explanation.links) {
    if (pointed.side === "target" && target === pointed.word) lit.source.set(source, explanation.alignment[target][source]);
    if (pointed.side === "source" && source === pointed.word) lit.target.set(target, explanation.alignment[target][source]);
  }
  return lit;
}
