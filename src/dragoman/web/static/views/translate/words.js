// What both panes and the beam share about words and numbers.

// How brightly a word is lit: it is pointed at itself, or linked strongly, or weakly.
export function lightOf(lit, index) {
  const weight = lit.get(index);
  if (weight === undefined) return "";
  if (weight === "own") return "lit own";
  return weight >= 0.4 ? "lit strong" : "lit weak";
}

export function percent(probability) {
  if (probability >= 0.995) return "100\u00a0%";
  if (probability >= 0.0995) return `${Math.round(100 * probability)}\u00a0%`;
  if (probability >= 0.001) return `${(100 * probability).toFixed(1)}\u00a0%`;
  return "<\u00a00.1\u00a0%";
}

// Length penalty of Wu et al. 2016: ((5 + |Y|) / 6)^α.
export const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

export const decimal = (value) => value.toFixed(2).replace("-", "−");

export const number = (value) => value.toLocaleString("en");

// A piece of the vocabulary as a reader sees it.
export const shownPiece = (piece) => (piece === "</s>" ? "end" : piece.replaceAll("▁", " ").trimStart() || "␣");

// The service counts an emoji, and whatever else is beyond the
// first 65,536, as one; a string counts it as two.
export const charactersOf = (text) => text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
// By how many characters a text is over the limit.
export const excess = (text, limit) => charactersOf(text) - limit;
