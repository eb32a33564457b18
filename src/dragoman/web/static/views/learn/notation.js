// The paper's symbols in one table, with what they are in the model that is loaded.

import { html } from "../../vendor/htm-preact.js";
import { Lesson } from "./lesson.js";
import { useFetched } from "./model.js";

const s = (name, below) => html`<span class="symbol">${name}${below && html`<sub>${below}</sub>`}</span>`;
const m = (name, above) => html`<span class="symbol">${name}<sup>${above}</sup></span>`;

export function Notation({ frame, seen, more }) {
  const { value } = useFetched(() => more.stream({ stack: "encoder", row: 0, order: null }), [more], more);
  const inner = value?.sublayers.find(({ hidden }) => hidden)?.hidden.length;
  const rows = [
    [s("n"), "how many tokens a sequence has; in complexities, its length", `${seen.source.length} read, ${seen.produced.length} written`, "vectors"],
    [s("N"), "layers in a half", `${seen.encoder_layers} and ${seen.decoder_layers}`, "machine"],
    [s("d", "model"), "numbers in a token’s vector, the same from the embedding to the end", seen.d_model, "vectors"],
    [s("d", "ff"), "numbers between the two products of the feed-forward layer", inner ?? "…", "block"],
    [s("h"), "heads of an attention", seen.num_heads, "heads"],
    [html`${s("d", "k")}, ${s("d", "v")}`, "numbers in a head’s query and key; in its value", seen.d_k, "qkv"],
    [html`${s("Q")}, ${s("K")}, ${s("V")}`, "queries, keys and values: a matrix each, one row a token", "", "qkv"],
    [html`${m("W", "Q")}, ${m("W", "K")}, ${m("W", "V")}`, "the learned matrices of a head that make them of a token’s vector", `${seen.d_model} × ${seen.d_k}`, "qkv"],
    [m("W", "O"), "the learned matrix after the heads, which mixes what they fetched", `${seen.num_heads * seen.d_k} × ${seen.d_model}`, "heads"],
    [html`${s("x")}, ${s("z")}, ${s("y")}`, "the source’s tokens; the encoder’s vectors of them; the tokens that are written", "", "machine"],
    [html`PE(pos, ${s("i")})`, "the position’s vector, and its i-th pair of numbers", "", "positions"],
    ["softmax", "makes weights of scores: positive, 1 in all, the larger the score the more", "", "query"],
    ["LayerNorm", "brings a vector’s numbers to mean 0 and spread 1, then applies a learned factor and offset", value ? `${value.own_order === "pre" ? "before" : "after"} each sub-layer` : "…", "block"],
    [s("ε", "ls"), "label smoothing: the share of the probability that training asks for elsewhere than at the right token", "", ""],
    [s("P", "drop"), "dropout: the share of numbers that training sets to 0 by chance; nothing is dropped when it translates", "", ""],
    [s("α"), "length penalty of the search: the larger, the longer the translations", "", ""],
    ["warmup_steps", "over how many steps of training the learning rate rises before it falls", "", ""],
    [html`${s("k")}, ${s("r")}`, "in Table 1 alone: width of a convolution, and of the neighbourhood of a restricted attention", "", "costs"],
  ];
  const titled = { machine: "the machine", vectors: "words as vectors", positions: "positions", query: "query", qkv: "Q, K and V", heads: "heads", block: "the block", costs: "Table 1" };
  return html`<${Lesson} frame=${frame} wide
    text=${html`<p>The paper uses its symbols before it explains them. Here they are together, with what they are in the model that is loaded. The paper counts layers and heads from 1, this page
      from 0.</p>`}>
    <div class="scroll plain-scroll" role="region" tabindex="0" aria-label="Notation"><table class="notation"><thead><tr><th scope="col">symbol</th><th scope="col">means</th><th scope="col">here</th><th scope="col">lesson</th></tr></thead>
      <tbody>${rows.map(([symbol, means, here, lesson], at) => html`<tr key=${at}><th scope="row">${symbol}</th><td>${means}</td><td class="here">${here}</td>
        <td>${lesson && titled[lesson]}</td></tr>`)}</tbody></table></div>
  </${Lesson}>`;
}
