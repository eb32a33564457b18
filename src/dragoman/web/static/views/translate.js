// Two panes: what is typed on the left, its translation on the right, and below them what one needs less often.

import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { addressOf, readAddress, replaceAddress } from "../router.js";
import { examplesOf } from "./examples.js";
import { needsModel } from "./needs-model.js";
import { BeamPanel } from "./translate/beam.js";
import { useCorrections } from "./translate/corrections.js";
import { chooseLanguages, Languages, LooksLike, namesIn, sourcesOf, wayOf } from "./translate/languages.js";
import { CopyButton, Snippets } from "./translate/copying.js";
import { FileButton, FilePanel, useFile } from "./translate/file.js";
import { GlossaryPanel, useGlossary } from "./translate/glossary.js";
import { HistoryPanel, useHistory } from "./translate/history.js";
import { Ribbons } from "./translate/ribbons.js";
import { SentencePanel } from "./translate/sentence.js";
import { SourcePane } from "./translate/source.js";
import { TargetPane } from "./translate/target.js";
import { Legend } from "./translate/trust.js";
import { useTranslation } from "./translate/translation.js";
import { useDropping } from "./translate/dropping.js";
import { charactersOf, excess, number } from "./translate/words.js";

export const TranslateView = needsModel(Translator);

function Translator({ about, values }) {
  const choose = (from, to) => chooseLanguages(about, from ?? (sourcesOf(about).length > 1 ? "auto" : undefined), to, true);
  const [text, setText] = useState(values.text ?? "");
  const [languages, setLanguages] = useState(() => choose(values.from, values.to));
  const [pointed, setPointed] = useState(null); // {side, segment, word}: what the pointer, focus or caret is on
  const [current, setCurrent] = useState(null); // {segment, goTo}: the sentence of the translation that the caret is in
  const [cleared, setCleared] = useState("");
  const [offered, setOffered] = useState(null); // a term for the glossary
  const [detected, setDetected] = useState(""); // the language that the text was last found to be in
  const glossary = useGlossary({ source: languages.source === "auto" ? detected : languages.source, target: languages.target });
  const translation = useTranslation(about, text, languages, glossary.terms);
  const history = useHistory(translation, text, languages);
  const corrections = useCorrections(about, translation);
  const file = useFile(about, languages);
  const source = useRef(null);
  const panes = useRef(null);

  useLayoutEffect(() => {
    replaceAddress("translate", { from: languages.source, to: languages.target, text });
  }, [text, languages]);
  useLayoutEffect(() => { // the address was changed by hand, or by the browser's way back
    const { values: wanted } = readAddress();
    if (wanted.text !== undefined && wanted.text !== text) setText(wanted.text);
    if (wanted.from || wanted.to) setLanguages(choose(wanted.from, wanted.to));
  }, [values.text, values.from, values.to]);
  useEffect(() => { if (translation.detected) setDetected(translation.detected.source); }, [translation.detected]);
  // When another text stands there, and not when more is known of it. An effect could come after the next key and undo it.
  const written = translation.segments.map((segment) => `${segment.start} ${segment.text}`).join("\n");
  useLayoutEffect(() => setPointed(null), [written]);
  useLayoutEffect(() => setCurrent(null), [text, languages]);

  const lit = useMemo(() => litWords(translation.segments, pointed), [translation.segments, pointed]);
  const write = useCallback((words) => { setText(words); setCleared(""); }, []);
  const put = (words, from, to) => {
    write(words);
    setLanguages(choose(from, to));
    source.current?.focus();
  };
  const clear = () => {
    setCleared(text);
    setText("");
    source.current?.focus();
  };
  const [isDragged, dropping] = useDropping(file.start);
  const link = () => location.origin + location.pathname + addressOf("translate", { from: languages.source, to: languages.target, text });
  const over = excess(text, about.character_limit);
  const isPivoted = Boolean(wayOf(about, translation.languages)?.pivot); // there is no one model to look into
  const names = namesIn(about);
  const from = translation.languages.source;
  const direction = from === "auto" ? `into ${names(languages.target)}` : `${names(from)} to ${names(languages.target)}`;
  const undo = () => {
    const at = translation.undo();
    if (at >= 0) setCurrent({ segment: at });
  };

  return html`
    <h1 class="unseen">Translate</h1>
    <section class=${isDragged ? "sheet translator dragged" : "sheet translator"} aria-label="Translate" ...${dropping}>
      <${Languages} about=${about} chosen=${languages} detected=${translation.detected} pivoting
        onChoose=${(from, to) => setLanguages(chooseLanguages(about, from, to, true))}
        onSwap=${() => put(translation.text || text, languages.target, translation.languages.source)} />
      <${LooksLike} about=${about} text=${text} chosen=${languages} translation=${translation} onChoose=${(from, to) => setLanguages(chooseLanguages(about, from, to, true))} />
      <div class="panes" ref=${panes}>
        <${SourcePane} text=${text} limit=${about.character_limit} language=${languages.source} segments=${translation.segments}
          lit=${lit} onText=${write} onPoint=${setPointed} onClear=${clear} onUndoClear=${cleared && (() => write(cleared))} onTerm=${setOffered}
          examples=${examplesOf(languages.source === "auto" ? sourcesOf(about) : [languages.source])} input=${source}>
          <${FileButton} formats=${about.file_formats} onFile=${file.start} />
        </${SourcePane}>
        <${TargetPane} translation=${translation} lit=${lit} language=${languages.target} current=${current} onCurrent=${setCurrent} onPoint=${setPointed} onLeave=${corrections.leave}
          instead=${over > 0 && html`<${TooLong} text=${text} limit=${about.character_limit} onFile=${file.start} />`}
          legend=${html`<${Legend} about=${about} translation=${translation} current=${current} onCurrent=${setCurrent} />
            <${SentencePanel} about=${about} translation=${translation} current=${current} corrections=${corrections} />`}>
          <${CopyButton} what="Copy" done="Copied" main content=${() => translation.text}
            disabled=${!translation.text || translation.state === "failed"} />
          <button type="button" class="quiet" onClick=${undo} disabled=${!translation.undoable || translation.state !== "done"}>Undo</button>
          <${CopyButton} what="Copy link" done="Link copied" content=${link} disabled=${!text} />
          ${translation.text && !isPivoted && html`<a class="quiet" href=${addressOf("inside", { from: translation.languages.source, to: languages.target, text })}>Look inside</a>`}
        </${TargetPane}>
        <${Ribbons} panes=${panes} segments=${translation.segments} pointed=${pointed} />
      </div>
      ${isDragged && html`<div class="drop-here" aria-hidden="true">Drop the file: it is translated into ${names(languages.target)}</div>`}
    </section>
    <${FilePanel} ...${file} />
    <${GlossaryPanel} glossary=${glossary} names=${direction} offered=${offered} />
    <${HistoryPanel} history=${history} names=${names} onOpen=${(entry) => { put(entry.text, entry.source, entry.target); scrollTo({ top: 0 }); }} />
    ${!isPivoted && html`<${BeamPanel} about=${about} translation=${translation}>
      <${Snippets} asked=${{ text, source: languages.source, target: languages.target }} keyRequired=${about.key_required} /></${BeamPanel}>`}
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
