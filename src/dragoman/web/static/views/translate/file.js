// A document, chosen or dropped on the page: translated as a whole by the service, and fetched back.

import { html, useEffect, useRef, useState } from "../../vendor/htm-preact.js";
import * as api from "../../api.js";
import { Failure } from "../failure.js";

const AROUND = 4096; // bytes, at the most, that a request has around a file

export function useFile(about, languages) {
  const [job, setJob] = useState(null); // {file, state: working, done or failed, name, address, problem}
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
      if (file.size > most) {
        throw new api.ApiError(`It has ${kib(file.size)} KiB, and this service takes ${kib(most)}: “dragoman translate-file” takes any size.`);
      }
      const translated = await api.translateFile(file, source, target, current.signal);
      if (!current.signal.aborted) setJob({ file, state: "done", address: URL.createObjectURL(translated), name: named(file.name, target) });
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
    ${problem && html`<${Failure} problem=${problem} retry=${() => start(file)} />`}
  </section>`;
}
