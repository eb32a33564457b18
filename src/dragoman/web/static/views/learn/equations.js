// Equations in MathML, which browsers draw themselves. The strings are constants of this file: nothing typed gets here.

import { html } from "../../vendor/htm-preact.js";

const i = (name) => `<mi>${name}</mi>`;
const n = (value) => `<mn>${value}</mn>`;
const o = (sign) => `<mo>${sign}</mo>`;
const word = (text) => `<mi mathvariant="normal">${text}</mi>`;
const row = (...parts) => `<mrow>${parts.join("")}</mrow>`;
const sub = (base, below) => `<msub>${base}${below}</msub>`;
const sup = (base, above) => `<msup>${base}${above}</msup>`;
const root = (inside) => `<msqrt>${inside}</msqrt>`;
const over = (above, below) => `<mfrac>${above}${below}</mfrac>`;
const call = (name, ...inside) => row(name, o("("), ...inside, o(")"));
const table = (...rows) => `<mtable>${rows.map((cells) => `<mtr>${cells.map((cell) => `<mtd>${cell}</mtd>`).join("")}</mtr>`).join("")}</mtable>`;
const d = (index) => sub(i("d"), word(index));
const PE = word("PE");
const angle = over(i("p"), sup(n("10000"), row(n(2), i("i"), o("/"), d("model"))));
// With brackets that are borders: those of fonts grow only where a font for mathematics is installed.
const matrix = (...rows) => table(...rows).replace("<mtable>", '<mtable class="matrix">');
const column = (...cells) => matrix(...cells.map((cell) => [cell]));

const EQUATIONS = {
  embedding: row(sub(i("x"), i("i")), o("="), root(d("model")), o("&#x22c5;"), sub(i("E"), sub(i("w"), i("i")))),
  position: `<mtable>
    <mtr><mtd>${row(PE, o("("), i("p"), o(","), n(2), i("i"), o(")"), o("="), word("sin"), o("("), angle, o(")"))}</mtd></mtr>
    <mtr><mtd>${row(PE, o("("), i("p"), o(","), n(2), i("i"), o("+"), n(1), o(")"), o("="), word("cos"), o("("), angle, o(")"))}</mtd></mtr>
  </mtable>`,
  rotation: row(
    column(row(word("sin"), i("ω"), o("("), i("p"), o("+"), i("k"), o(")")), row(word("cos"), i("ω"), o("("), i("p"), o("+"), i("k"), o(")"))),
    o("="),
    matrix(
      [row(word("cos"), i("ω"), i("k")), row(word("sin"), i("ω"), i("k"))],
      [row(o("−"), word("sin"), i("ω"), i("k")), row(word("cos"), i("ω"), i("k"))],
    ),
    column(row(word("sin"), i("ω"), i("p")), row(word("cos"), i("ω"), i("p"))),
  ),
  attention: row(call(word("Attention"), i("Q"), o(","), i("K"), o(","), i("V")), o("="), word("softmax"),
    o("("), over(row(i("Q"), sup(i("K"), word("T"))), root(sub(i("d"), i("k")))), o(")"), i("V")),
  variance: row(i("q"), o("&#x22c5;"), i("k"), o("="),
    `<munderover><mo>∑</mo>${row(i("i"), o("="), n(1))}${sub(i("d"), i("k"))}</munderover>`, sub(i("q"), i("i")), sub(i("k"), i("i")), o(","),
    `<mspace width="1em"></mspace>`, call(word("Var"), i("q"), o("&#x22c5;"), i("k")), o("="), sub(i("d"), i("k"))),
  heads: row(word("MultiHead"), o("="), call(word("Concat"), sub(word("head"), n(1)), o(","), o("…"), o(","), sub(word("head"), i("h"))), sup(i("W"), i("O"))),
  path: row(word("recurrent"), o(":"), row(i("O"), o("("), i("n"), o(")")), `<mspace width="2em"></mspace>`, word("attention"), o(":"), row(i("O"), o("("), n(1), o(")"))),
  mask: row(sub(i("s"), row(i("t"), i("j"))), o("="), o("−"), n("∞"), `<mspace width="1em"></mspace>`, `<mtext>for</mtext>`, `<mspace width="0.5em"></mspace>`, i("j"), o("&gt;"), i("t")),
  sublayer: row(i("x"), o("+"), call(word("Sublayer"), call(word("LayerNorm"), i("x"))), `<mspace width="1.2em"></mspace><mtext>or</mtext><mspace width="1.2em"></mspace>`,
    call(word("LayerNorm"), i("x"), o("+"), call(word("Sublayer"), i("x")))),
  cheaper: row(sup(i("n"), n(2)), i("d"), o("&lt;"), i("n"), sup(i("d"), n(2)), `<mspace width="1em"></mspace><mtext>where</mtext><mspace width="1em"></mspace>`, i("n"), o("&lt;"), i("d")),
  bleu: row(word("BLEU"), o("="), n(100), o("&#x22c5;"), word("min"), o("("), n(1), o(","), sup(i("e"), row(n(1), o("−"), i("r"), o("/"), i("c"))), o(")"), o("&#x22c5;"),
    sup(row(o("("), sub(i("p"), n(1)), sub(i("p"), n(2)), sub(i("p"), n(3)), sub(i("p"), n(4)), o(")")), row(n(1), o("/"), n(4)))),
};

// `name` is one of the above. Set as markup because elements of mathematics have a namespace of their own.
export function Equation({ name }) {
  return html`<div class="equation" role="group" aria-label="Equation" tabindex="0" dangerouslySetInnerHTML=${{ __html: `<math display="block">${EQUATIONS[name]}</math>` }}></div>`;
}
