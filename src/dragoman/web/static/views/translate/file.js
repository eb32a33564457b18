// A document, chosen or dropped on the page: translated as a whole by the service, fetched back, and shown sentence by
// sentence with what is doubtful.

import { html, useEffect, useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { Failure } from "../failure.js";
import { doubtOf } from "./trust.js";
import { number } from "./words.js";

const AROUND = 4096; // bytes, at the most, that a request has around a file
const AT_FIRST = 12; // sentences of the preview

export function useFile(about, languages) {
  const [job, setJob] = useState(null); // {file, state: working, done or failed, name, address, preview, sentences, problem}
  const control = useRef(null);
  useEffect(() => () => control.current?.abort(), []);
  useEffect(() => () => job?.address && URL.revokeObjectURL(job.address), [job]);
  const drop = () => {
    control.current?.abort();
    setJob(null);
  };
  const start = async (file) => {
    control.current?.abort();
    const current = (control.current = new AbortController());
    const { source, target } = languages;
    setJob({ file, state: "working" });
    try {
      // Of a request that is too large a browser may never hear why: the connection is closed while it still sends.
      const most = Math.max(0, about.body_limit - AROUND);
      if (file.size > most) throw new api.ApiError(`It has ${kib(file.size)} KiB, and this service takes ${kib(most)} KiB.`);
      const { content, preview, sentences } = await api.translateFile(file, source, target, current.signal);
      if (!current.signal.aborted) setJob({ file, state: "done", address: URL.createObjectURL(content), name: named(file.name, target), preview, sentences, target });
    } catch (problem) {
      if (!current.signal.aborted) setJob({ file, state: "failed", problem });
    }
  };
  return { job, start, drop };
}

const kib = (bytes) => Math.ceil(bytes / 1024).toLocaleString("en");

// report.docx in French is report.fr.docx.
function named(name, language) {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? `${name}.${language}` : `${name.slice(0, dot)}.${language}${name.slice(dot)}`;
}

export function FileButton({ formats, onFile }) {
  const input = useRef(null);
  const chosen = (event) => {
    const [file] = event.target.files;
    event.target.value = ""; // the same file again is a choice, too
    if (file) onFile(file);
  };
  return html`<button type="button" class="quiet" title=${`Of the kinds ${formats.map((one) => one.slice(1)).join(", ")}`}
      onClick=${() => input.current.click()}>Translate a file</button>
    <input type="file" ref=${input} hidden accept=${formats.join(",")} aria-label="File to translate" onChange=${chosen} />`;
}

export function FilePanel({ job, start, drop }) {
  if (!job) return null;
  const { file, state, problem, name, address } = job;
  return html`<section class="sheet file" aria-label="File">
    <p role="status">${state === "working" && html`<b>${file.name}</b> is being translated …`}
      ${state === "done" && html`<b>${file.name}</b> is translated: <a href=${address} download=${name}>${name}</a>`}
      ${state === "failed" && html`<b>${file.name}</b> is not translated.`}</p>
    <button type="button" class="quiet" onClick=${drop}>${state === "working" ? "Cancel" : "Close"}</button>
    ${state === "working" && html`<progress aria-label="Translating the file"></progress>`}
    ${problem && html`<${Failure} problem=${problem} retry=${() => start(file)} />`}
    ${job.preview?.length > 0 && html`<${Preview} key=${address} ...${job} />`}
  </section>`;
}

// The document's sentences beside each other. Those that are doubtful come with their reason; the file has them as they are.
function Preview({ preview, sentences, target }) {
  const told = preview.map((one, at) => ({ ...one, at, doubt: doubtIn(one) }));
  const doubtful = told.filter(({ doubt }) => doubt);
  const [only, setOnly] = useState(false);
  const [count, setCount] = useState(AT_FIRST);
  const chosen = only ? doubtful : told;
  const summary = doubtful.length
    ? `${number(doubtful.length)} of ${number(preview.length)} sentences ${doubtful.length === 1 ? "is" : "are"} doubtful`
    : told.some(({ confidence }) => confidence !== null) ? "No sentence is doubtful" : "No sentence has a defect";
  return html`<div class="preview" role="region" aria-label="Preview">
    <p class="preview-head"><span role="status" class=${doubtful.length ? "doubtful" : ""}>${summary}${sentences > preview.length ? `; the first ${number(preview.length)} of ${number(sentences)} are shown` : ""}.</span>
      ${doubtful.length > 0 && html`<label><input type="checkbox" checked=${only} onChange=${(event) => setOnly(event.target.checked)} /> Only these</label>`}</p>
    <table><thead><tr><th scope="col">Text</th><th scope="col">Translation</th></tr></thead>
      <tbody>${chosen.slice(0, count).map(({ source, output, confidence, doubt, at }) => html`<tr key=${at} class=${doubt ? "doubtful-row" : ""}
        style=${{ "--p": confidence ?? 1 }} data-confidence=${confidence ?? ""}>
        <td dir="auto">${source}</td><td dir="auto" lang=${target}>${output}${doubt && html`<span class="reason">${doubt}</span>`}</td></tr>`)}</tbody></table>
    ${chosen.length > count && html`<button type="button" class="quiet" onClick=${() => setCount(count + 50)}>Show more of ${number(chosen.length)}</button>`}
  </div>`;
}

const doubtIn = (one) => doubtOf({ ...one, text: one.output, changed: false, corrected: false });
