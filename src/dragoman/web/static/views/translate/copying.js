// Copying: the translation, a link that holds the text, the request as others would make it.

import { html, useEffect, useState } from "../../vendor/htm-preact.js";

export function CopyButton({ what, label, done, content, disabled, main = false }) {
  const [state, setState] = useState("");
  useEffect(() => {
    if (!state) return undefined;
    const timer = setTimeout(() => setState(""), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await write(content());
      setState(done);
    } catch {
      setState("Not allowed by the browser");
    }
  };
  return html`<button type="button" class=${main ? "main" : "quiet"} onClick=${copy} disabled=${disabled} aria-label=${state ? undefined : label}>
    <span aria-live="polite">${state || what}</span>
  </button>`;
}

// Browsers keep the clipboard from pages over plain HTTP, except on this machine; the old way works there too.
async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) throw new Error("not copied");
  return undefined;
}

export function Snippets({ asked, keyRequired }) {
  return html`<span class="snippets" role="group" aria-label="Copy the request">
    <span>The same from a program: copy as</span>
    <${CopyButton} what="curl" label="Copy as curl" done="Copied" content=${() => asCurl(asked, keyRequired)} disabled=${!asked.text} />
    <${CopyButton} what="Python" label="Copy as Python" done="Copied" content=${() => asPython(asked, keyRequired)} disabled=${!asked.text} />
  </span>`;
}

const body = ({ text, source, target }) => JSON.stringify({ q: text, source, target });

export function asCurl(asked, keyRequired) {
  const values = keyRequired ? body(asked).replace(/}$/, ',"api_key":"YOUR-KEY"}') : body(asked);
  const quoted = `'${values.replaceAll("'", `'\\''`)}'`;
  return `curl ${location.origin}/translate -H 'Content-Type: application/json' -d ${quoted}`;
}

export function asPython(asked, keyRequired) {
  const values = JSON.stringify({ q: asked.text, source: asked.source, target: asked.target, ...(keyRequired ? { api_key: "YOUR-KEY" } : {}) });
  return [
    "import json, urllib.request",
    "",
    `request = urllib.request.Request("${location.origin}/translate", headers={"Content-Type": "application/json"})`,
    // JSON in a JSON string is a Python string too
    `request.data = ${JSON.stringify(values)}.encode()`,
    'print(json.load(urllib.request.urlopen(request))["translatedText"])',
    "",
  ].join("\n");
}
