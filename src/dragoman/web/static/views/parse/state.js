// What the Parse view shows, and how the address says it. Layers and heads count from 0, as in Python.

const whole = (text, otherwise) => (/^\d+$/.test(text ?? "") ? Number(text) : otherwise);

export function readState(values) {
  return {
    text: values.text ?? "",
    constrained: values.trees !== "free",
    layer: whole(values.layer, null), // null: the last
    head: whole(values.head, -1), // -1: the mean of all
    at: whole(values.at, 1), // which bracket, counted as they are opened, the root first; where there is no tree: which symbol
    closing: values.end === "closing",
  };
}

export function writeState({ text, constrained, layer, head, at, closing }) {
  return {
    text,
    trees: constrained ? "" : "free",
    layer: layer === null ? "" : String(layer),
    head: head < 0 ? "" : String(head),
    at: at === 1 ? "" : String(at),
    end: closing ? "closing" : "",
  };
}

const WRITTEN = { "-LRB-": "(", "-RRB-": ")", "``": "“", "''": "”" };

// A word as people write it, where treebanks have another way.
export const shownWord = (word) => WRITTEN[word] ?? word;
export const END = "⟨end⟩";
export const columnsOf = (answer) => [...answer.words.map(shownWord), END];
