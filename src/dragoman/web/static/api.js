// The service, as the views see it. Every failure is an ApiError whose message can be shown as it is.

export const AWAY = "The service does not answer.";

export class ApiError extends Error {
  constructor(message, status = 0, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const KEY = "dragoman-key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
};

export async function ask(path, body, signal) {
  const headers = key.get() ? { authorization: `Bearer ${key.get()}` } : {};
  const options = { headers, signal };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  const response = await reach(`/api/v1/${path}`, options);
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw failed(response, inWords(response.status, error));
}

async function reach(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError(AWAY);
  }
}

const failed = ({ status, headers }, words) => new ApiError(words, status, Number(headers.get("retry-after")));

function inWords(status, error) {
  if (status === 401) return "This service asks for a key.";
  if (status === 403 && error === "Invalid API key") return "The service does not know this key.";
  if (status === 429) return "That was too much for a minute.";
  if (status === 503) return "The service is busy.";
  return (error ?? "Something went wrong in the service.").replace(/^Invalid request: /, "");
}

// The service counts characters; a string here counts an emoji, and whatever else is beyond the first 65,536, as two.
function placed(text, spans) {
  const at = [0];
  for (const character of text) at.push(at[at.length - 1] + character.length);
  return spans.map((span) => ({ ...span, start: at[span.start], end: at[span.end] }));
}

// The shell and its view ask at the same time: they share one answer.
const FRESH = 1000; // milliseconds
let newest = { at: -Infinity };

export function service() {
  if (performance.now() - newest.at > FRESH) {
    const answer = ask("service").then((response) => response.json());
    const asked = { at: performance.now(), answer };
    answer.catch(() => { if (newest === asked) newest = { at: -Infinity }; });
    newest = asked;
  }
  return newest.answer;
}

export async function explain(question, signal) {
  const found = await (await ask("explain", question, signal)).json();
  return { ...found, source_words: placed(found.source, found.source_words), target_words: placed(found.target, found.target_words) };
}
export const alternatives = async (question, signal) => (await ask("alternatives", question, signal)).json();
// The first candidates of a text that is one sentence.
export const candidates = async (question, signal) => (await (await ask("translate", question, signal)).json()).segments[0].candidates;
export const correct = async (question, signal) => (await ask("corrections", question, signal)).json();
export const parse = async (question, signal) => (await ask("parse", question, signal)).json();
export const beam = async (question, signal) => (await ask("beam", question, signal)).json();

// Which of the languages served a text is in.
export async function detect(text, signal) {
  const body = new URLSearchParams({ q: text, api_key: key.get() });
  const response = await reach("/detect", { method: "POST", body, signal });
  return response.ok ? (await response.json())[0] : null;
}

// LibreTranslate's way, which has its key among the values. Fetched at once: the service keeps the file for minutes only.
// With it come its sentences, as they were translated.
export async function translateFile(file, source, target, signal) {
  const body = new FormData();
  for (const [name, value] of Object.entries({ file, source, target, api_key: key.get(), preview: "1" })) body.append(name, value);
  const response = await reach("/translate_file", { method: "POST", body, signal });
  const { error, translatedFileUrl, preview = [], sentences = 0 } = await response.json().catch(() => ({}));
  if (response.ok) return { content: await (await reach(new URL(translatedFileUrl).pathname, { signal })).blob(), preview, sentences };
  if (error?.endsWith("to get an API key")) throw failed(response, inWords(401));
  if (error?.endsWith("file format not supported")) throw failed(response, "Files of this kind are not translated, or it is not of the kind that its name says.");
  throw failed(response, inWords(response.status, error));
}

// Below /inside, where some answers are not JSON: the response itself.
export const inside = (path, question, signal) => ask(`inside${path}`, question, signal);

// The server-sent events of an answer as [name, values], until it ends.
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const events = waiting.split("\n\n");
    waiting = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (\w+)\ndata: (.*)$/s) ?? [];
      if (name) yield [name, JSON.parse(data)];
    }
  }
}

// A signal that follows another, and gives up by itself when nothing was `heard` for so many milliseconds.
function patient(signal, patience) {
  const control = new AbortController();
  const follow = () => control.abort();
  const giveUp = () => control.abort(new ApiError(`The service has not answered for ${Math.round(patience / 1000)} s.`));
  let timer = setTimeout(giveUp, patience);
  signal.addEventListener("abort", follow);
  return {
    signal: control.signal,
    heard: () => { clearTimeout(timer); timer = setTimeout(giveUp, patience); },
    end: () => { clearTimeout(timer); signal.removeEventListener("abort", follow); },
  };
}

// Sentence by sentence, as they are done: `onSegment` for each, and the last event as the result.
export async function translate(question, signal, patience, onSegment) {
  const waiting = patient(signal, patience);
  try {
    for await (const [name, values] of eventsOf(await ask("translate/stream", question, waiting.signal))) {
      waiting.heard();
      if (name === "segment") onSegment({ ...placed(question.text, [values])[0], words: placed(values.candidates[0].text, values.words) });
      else if (name === "error") throw new ApiError(inWords(503), 503, values.retry_after);
      else if (name === "done") return values;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError("The answer ended in the middle."); // the connection broke
  } finally {
    waiting.end();
  }
  throw new ApiError("The answer ended in the middle.");
}

// Whether the same question may be answered later: nobody was there, or too busy, or something broke.
export const isPassing = (error) => !error.status || error.status === 429 || error.status >= 500;
