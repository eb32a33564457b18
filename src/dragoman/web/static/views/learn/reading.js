// Where to read on. Numbers are those of arXiv; nothing here is a link, as this page leads nowhere else.

import { html } from "../../vendor/htm-preact.js";
import { Lesson } from "./lesson.js";

const SHELVES = [
  ["The paper, and what came just before", [
    ["Vaswani and others, 2017", "Attention Is All You Need", "1706.03762", "the paper; its figure 1 is the machine above"],
    ["Sutskever, Vinyals and Le, 2014", "Sequence to Sequence Learning with Neural Networks", "1409.3215", "two recurrent networks and one vector between them"],
    ["Bahdanau, Cho and Bengio, 2015", "Neural Machine Translation by Jointly Learning to Align and Translate", "1409.0473", "additive attention: keys and values are still one"],
    ["Luong, Pham and Manning, 2015", "Effective Approaches to Attention-based Neural Machine Translation", "1508.04025", "multiplicative attention"],
  ]],
  ["Its parts", [
    ["He and others, 2016", "Deep Residual Learning for Image Recognition", "1512.03385", "the residual connection"],
    ["Ba, Kiros and Hinton, 2016", "Layer Normalization", "1607.06450", "each vector by itself"],
    ["Xiong and others, 2020", "On Layer Normalization in the Transformer Architecture", "2002.04745", "before or after: why one needs a warm-up"],
    ["Press and Wolf, 2017", "Using the Output Embedding to Improve Language Models", "1608.05859", "one matrix for embeddings and output"],
    ["Szegedy and others, 2016", "Rethinking the Inception Architecture for Computer Vision", "1512.00567", "label smoothing"],
  ]],
  ["What the heads do", [
    ["Michel, Levy and Neubig, 2019", "Are Sixteen Heads Really Better than One?", "1905.10650", "many heads can be removed"],
    ["Voita and others, 2019", "Analyzing Multi-Head Self-Attention", "1905.09418", "the roles of those that remain"],
    ["Jain and Wallace, 2019", "Attention is not Explanation", "1902.10186", "and its answer, “Attention is not not Explanation”, 1908.04626"],
  ]],
  ["What became of it", [
    ["Devlin and others, 2018", "BERT", "1810.04805", "the encoder alone"],
    ["Brown and others, 2020", "Language Models are Few-Shot Learners", "2005.14165", "GPT-3: the decoder alone"],
    ["Raffel and others, 2019", "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", "1910.10683", "T5: both, text to text"],
    ["Dosovitskiy and others, 2020", "An Image is Worth 16x16 Words", "2010.11929", "ViT: the encoder over patches of a picture"],
  ]],
  ["Scores", [
    ["Papineni and others, 2002", "BLEU: a Method for Automatic Evaluation of Machine Translation", "", "ACL 2002, P02-1040"],
    ["Post, 2018", "A Call for Clarity in Reporting BLEU Scores", "1804.08771", "sacreBLEU and its signatures"],
  ]],
];

export function Reading({ frame }) {
  return html`<${Lesson} frame=${frame} wide text=${html`<p>What stands on these pages, at its sources. In Dragoman’s own documents, the paper map leads from each equation to its code and its test, and
    “The same model elsewhere” trains a language model, a masked model and a reader of pictures with the same parts.</p>`}>
    ${SHELVES.map(([shelf, works]) => html`<h3 key=${shelf}>${shelf}</h3><ul class="reading-list">${works.map(([who, title, number, about]) => html`<li key=${title}>
      ${who}: <cite>${title}</cite>${number && html` <span class="small">arXiv ${number}</span>`}; ${about}</li>`)}</ul>`)}
  </${Lesson}>`;
}
