// The course of the living machine: every moment from the words that go in to the word that comes out, in order.

// A moment: {stage, layer, at}: what happens, in which layer, and which word is being written (-1: the source is read).
export function courseOf(seen, units) {
  const moments = [{ stage: "words", layer: 0, at: -1 }, { stage: "embedding", layer: 0, at: -1 }];
  for (let layer = 0; layer < seen.encoder_layers; layer += 1) {
    moments.push({ stage: "attend", layer, at: -1 }, { stage: "feed", layer, at: -1 });
  }
  moments.push({ stage: "read", layer: seen.encoder_layers - 1, at: -1 });
  for (let at = 0; at < units.produced.length; at += 1) {
    moments.push({ stage: "fed", layer: 0, at });
    for (let layer = 0; layer < seen.decoder_layers; layer += 1) {
      moments.push({ stage: "self", layer, at }, { stage: "cross", layer, at }, { stage: "decoder-feed", layer, at });
    }
    moments.push({ stage: "output", layer: seen.decoder_layers - 1, at });
  }
  return moments;
}

// The first word is taken slowly, the others quicker: what happens is the same again.
export function lasting({ stage, at }) {
  if (at < 1) return stage === "output" ? 1400 : 800;
  return stage === "output" ? 700 : 260;
}

// What happens in words: [text before, ...], with the strongest link of an attention named.
export function tellingOf(moment, { seen, units, weights, next, chance }) {
  const { stage, layer, at } = moment;
  const own = units.fed[Math.min(Math.max(at, 0), units.fed.length - 1)].text;
  const where = `Layer ${layer}`;
  switch (stage) {
    case "words": return ["vectors", "The sentence comes in", `${units.source.length} of them, the last says that it ends.`];
    case "embedding": return ["positions", "Each becomes a vector", `${seen.d_model} numbers that were learned, plus a fingerprint of its place. Shown are the first ${Math.min(16, seen.d_model)}.`];
    case "attend": return ["query", `${where}: self-attention`, `All look at all. The strongest line: “${units.source[weights.row].text}” takes ${share(weights.value)} from “${units.source[weights.column].text}”.`];
    case "feed": return ["block", `${where}: feed-forward`, "Each is worked on alone, by the same small network."];
    case "read": return ["block", "The sentence is read", "Each vector now knows its sentence. They stay as they are while the translation is written."];
    case "fed": return ["mask", at ? `“${own}” goes back in` : "The start symbol goes in", at ? "What was written is read as the next input." : "The decoder has nothing yet to read but this."];
    case "self": return ["mask", `${where}: masked self-attention`, at ? `“${own}” looks at what is written so far; most at “${units.fed[weights.column].text}”, ${share(weights.value)}.` : "It sees itself only: nothing else is written yet."];
    case "cross": return ["qkv", `${where}: cross-attention`, `“${own}” looks at the source; most at “${units.source[weights.column].text}”, ${share(weights.value)}.`];
    case "decoder-feed": return ["block", `${where}: feed-forward`, "The same again as in the encoder, with weights of its own."];
    default: return ["questions", `Out comes “${units.produced[at].text}”`, next === units.produced[at].text
      ? `It is the likeliest of all pieces of the vocabulary, with probability ${chance.toFixed(4)}.`
      : `Of all pieces of the vocabulary “${next}” is the likeliest to come next; “${units.produced[at].text}” is written, with probability ${chance.toFixed(4)}.`];
  }
}

const share = (value) => `${Math.round(100 * value)} %`;
