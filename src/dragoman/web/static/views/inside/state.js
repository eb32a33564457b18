// What the Inside view shows, and how the address says it. Layers, heads and tokens count from 0, as in Python.

export const KINDS = ["encoder", "decoder", "cross"];
export const TITLES = {
  encoder: "Encoder: self-attention",
  decoder: "Decoder: masked self-attention",
  cross: "Decoder: attention to the source",
};
export const STATISTICS = {
  entropy: { name: "Entropy", about: "nats; 0: each row looks at one token", digits: 2 },
  diagonal: { name: "Diagonal", about: "weight on the row’s own position", digits: 2 },
  previous: { name: "Previous token", about: "weight on the position before", digits: 2 },
  end: { name: "End of sentence", about: "weight on the source’s end symbol; in the decoder on its start symbol", digits: 2 },
  distance: { name: "Distance", about: "tokens between a row’s position and what it looks at", digits: 1 },
  effect: { name: "Effect", about: "change in log P when the head is switched off", digits: 2 },
};
export const VIEWS = { heads: "Heads", lens: "Layer by layer", contributions: "What it came from", contrast: "Why this word" };
const NUMBERS = { sentence: 0, layer: 0, head: 0, row: 0, column: -1, at: -1 };

export function readState(values) {
  const number = (name) => (/^\d+$/.test(values[name] ?? "") ? Number(values[name]) : NUMBERS[name]);
  return {
    from: values.from ?? "",
    to: values.to ?? "",
    text: values.text ?? "",
    translation: values.translation ?? "", // what was typed in place of the service's own
    view: values.view in VIEWS ? values.view : "heads",
    instead: values.instead ?? "", // why not these words
    token: values.token ?? "", // or why not this token
    kind: KINDS.includes(values.kind) ? values.kind : "cross",
    statistic: values.statistic in STATISTICS ? values.statistic : "entropy",
    changes: (values.changes ?? "").split(",").map((change) => change.trim()).filter(Boolean),
    ranked: values.ranked === "1",
    ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, number(name)])),
  };
}

export function writeState(state) {
  const numbers = Object.entries(NUMBERS).map(([name, usual]) => [name, state[name] === usual ? "" : String(state[name])]);
  return {
    from: state.from,
    to: state.to,
    text: state.text,
    translation: state.translation,
    view: state.view === "heads" ? "" : state.view,
    instead: state.instead,
    token: state.token,
    kind: state.kind,
    ...Object.fromEntries(numbers),
    statistic: state.statistic === "entropy" ? "" : state.statistic,
    changes: state.changes.join(","),
    ranked: state.ranked ? "1" : "",
  };
}

// A statistic of a head; in the decoder the start symbol stands where the end symbol is elsewhere.
export function statisticOf(head, name, effects) {
  if (name === "effect") return effects.get(headKey(head)) ?? null;
  if (name === "end" && head.kind === "decoder") return head.start;
  return head[name];
}

export const headKey = ({ kind, layer, head }) => `${kind}.${layer}.${head}`;
export const headName = ({ kind, layer, head }) => `${kind} ${layer}.${head}`;
export const isOff = (changes, head) => changes.includes(`${headKey(head)}:off`);
export const pinOf = (changes, head) => changes.find((change) => change.startsWith(`${headKey(head)}:pin@`));
export const UNMASK = "decoder.*:unmask";

const SAID = /^(\w+)\.(\d+|\*)(?:\.(\d+|\*))?:(off|unmask|pin@(\d+)(?:\/(\d+))?)$/;

export function changeInWords(change, columnsOf) {
  const [, kind, layer, head, what, token, row] = change.match(SAID) ?? [];
  if (!kind) return change;
  if (what === "unmask") return layer === "*" ? "decoder: mask dropped" : `decoder layer ${layer}: mask dropped`;
  const whose = `${kind} layer ${layer}, head ${head}`.replaceAll("*", "all");
  if (what === "off") return `${whose}: off`;
  const seen = columnsOf(kind)[token];
  return `${whose}: pinned to ${seen === undefined ? `token ${token}` : `“${shownToken(seen)}”`}${row ? ` in row ${row}` : ""}`;
}

export const layersOf = (seen, kind) => (kind === "encoder" ? seen.encoder_layers : seen.decoder_layers);
export const columnsOf = (seen, kind) => (kind === "decoder" ? seen.fed : seen.source);

// The produced token that is explained: the one chosen, or else the one that the model was least sure of.
export function positionOf(seen, at) {
  if (at >= 0 && at < seen.produced.length) return at;
  return seen.log_probabilities.indexOf(Math.min(...seen.log_probabilities));
}

// The labels of rows: in the decoder both the token that is fed and the one that is produced.
export function rowsOf(seen, kind) {
  if (kind === "encoder") return seen.source.map(shownToken);
  return seen.fed.map((fed, row) => `${shownToken(fed)} → ${shownToken(seen.produced[row])}`);
}

// A piece of the vocabulary as a reader sees it: a dot before what goes on within a word.
export function shownToken(piece) {
  if (piece === "</s>") return "⟨end⟩";
  if (piece === "<s>") return "⟨start⟩";
  const plain = piece.replaceAll("▁", " ").trim() || "␣";
  return !piece.startsWith("▁") && /^\p{L}/u.test(plain) ? `·${plain}` : plain;
}

export const signed = (value, digits = 2) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
export const minus = (value, digits = 2) => value.toFixed(digits).replace("-", "−");
