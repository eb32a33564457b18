// The picture of the living machine: the encoder above, the decoder below, both from left to right, in one SVG.

import { html } from "../../vendor/htm-preact.js";

const ROW = 24;
const TOP = 30; // where a half's first row stands, under the names of its columns
const GAP = 34; // between the halves
const BETWEEN = 12;
const FAINT = 0.04; // weights below are not drawn
const LETTER = 7.1; // pixels of a letter in a label, about

// Names on a phone; x is a vector, as in the equations.
const SHORT = { "+ position": "x", stream: "x", "self-attention": "self", "masked self-attention": "self", "feed-forward": "ff" };

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Where everything stands in so many pixels.
export function layoutOf(width, units, numbers) {
  const narrow = width < 720;
  const cells = narrow ? Math.min(8, numbers) : numbers;
  const longest = Math.max(...[...units.source, ...units.fed].map(({ text }) => text.length));
  const words = Math.min(narrow ? 74 : 128, Math.max(48, longest * LETTER + 8));
  const strip = narrow ? 30 : 80;
  const between = narrow ? 6 : BETWEEN;
  const rest = width - 4 - words - 3 * strip - (narrow ? 8 : 250) - 8 * between;
  const attend = Math.max(40, rest * (narrow ? 0.36 : 0.42));
  const feed = Math.max(18, rest * 0.2);
  const x = { words: 4 };
  x.embedding = x.words + words + between;
  x.attend = x.embedding + strip + between;
  x.feed = x.attend + attend + between; // the encoder's; in the decoder what self-attention left stands here
  x.read = x.feed + Math.max(feed, strip) + between - (narrow ? 4 : 0);
  x.middle = x.attend + attend + between;
  x.cross = narrow ? x.middle + strip + between : x.read + strip + between;
  const cross = narrow ? 30 : Math.max(44, rest * 0.2);
  x.decoderFeed = x.cross + cross + between;
  x.state = x.decoderFeed + feed + between;
  x.output = x.state + strip + between;
  const encoder = TOP;
  const decoder = encoder + ROW * units.source.length + GAP + TOP;
  const bottom = decoder + ROW * units.fed.length + 12;
  return { width, narrow, cells, words, strip, attend, feed, encoderFeed: Math.max(feed, strip), cross, x, encoder, decoder, beside: x.cross + cross + 2 * between, height: bottom + (narrow ? 170 : 14), bottom };
}

const middleOf = (top, row) => top + ROW * (row + 0.5);

export function Picture({ layout, moment, units, machine, grouped, chosen, address, goTo }) {
  const { stage, layer, at } = moment;
  const { x, encoder, decoder } = layout;
  const reading = at < 0;
  const readSteps = reading ? encoderStep(stage, layer) : machine.encoder.stages.length;
  const read = (row) => streamOf(machine.encoder, readSteps, units.source[row].main);
  const block = (id, lesson, label, left, top, width, rows, active) => html`<a key=${id} href=${address(lesson)} class=${`block${active ? " active" : ""}`} aria-label=${`${label}: opens its lesson`} onClick=${() => goTo(lesson)}>
    <rect x=${left - 3} y=${top - 22} width=${width + 6} height=${22 + ROW * rows + 6} rx="8" /><text x=${left + width / 2} y=${top - 7} class="part">${layout.narrow ? SHORT[label] ?? label : label}</text></a>`;
  const attending = reading && stage === "attend";
  const rows = units.source.length;
  const written = units.fed.length;
  return html`<svg class="living" width=${layout.width} height=${layout.height} viewBox=${`0 0 ${layout.width} ${layout.height}`} role="group" aria-label="The machine">
    ${block("e-words", "vectors", "words", x.words, encoder, layout.words, rows, stage === "words")}
    ${block("e-embedding", "positions", "+ position", x.embedding, encoder, layout.strip, rows, stage === "embedding")}
    ${block("e-attend", "query", "self-attention", x.attend, encoder, layout.attend, rows, attending)}
    ${block("e-feed", "block", "feed-forward", x.feed, encoder, layout.encoderFeed, rows, stage === "feed")}
    ${block("e-read", "block", "stream", x.read, encoder, layout.strip, rows, stage === "read")}
    ${block("d-words", "mask", "written", x.words, decoder, layout.words, written, stage === "fed")}
    ${block("d-embedding", "positions", "+ position", x.embedding, decoder, layout.strip, written, false)}
    ${block("d-self", "mask", "masked self-attention", x.attend, decoder, layout.attend, written, stage === "self")}
    ${block("d-middle", "block", "stream", x.middle, decoder, layout.strip, written, false)}
    ${block("d-state", "block", "stream", x.state, decoder, layout.strip, written, false)}
    ${block("d-cross", "qkv", "cross", x.cross, decoder, layout.cross, written, stage === "cross")}
    ${block("d-feed", "block", "feed-forward", x.decoderFeed, decoder, layout.feed, written, stage === "decoder-feed")}

    ${!reading && html`<rect class="row-now" x="1" y=${decoder + ROW * at} width=${x.state + layout.strip + 3} height=${ROW} rx="4" />`}
    ${units.source.map(({ text }, row) => html`<text key=${`w${row}`} class="word" x=${x.words + 4} y=${middleOf(encoder, row) + 4}>${shortened(text, Math.floor(layout.words / LETTER))}</text>`)}
    ${stage !== "words" && units.source.map(({ main }, row) => html`<${Cells} key=${`s${row}`} values=${machine.encoder.embedded[main]} left=${x.embedding} row=${middleOf(encoder, row)} layout=${layout} most=${machine.encoder.most[0]} />`)}
    ${(attending || !reading) && lines(grouped.encoder(attending ? layer : machine.encoder.stages[machine.encoder.stages.length - 1].layer), x.attend, layout.attend, encoder, encoder, attending ? 1 : 0.22)}
    ${!["words", "embedding"].includes(stage) && units.source.map((_, row) => html`<${Cells} key=${`r${row}`} values=${read(row)} left=${x.read} row=${middleOf(encoder, row)} layout=${layout} most=${machine.encoder.most[readSteps]} />`)}
    ${(stage === "feed" || !reading) && units.source.map((_, row) => html`<${Funnel} key=${`f${row}`} left=${x.feed} width=${layout.encoderFeed} row=${middleOf(encoder, row)} on=${stage === "feed"} />`)}

    ${!reading && units.fed.slice(0, at + 1).map(({ text }, row) => html`<text key=${`v${row}`} class=${`word${row === at ? " now" : ""}`} x=${x.words + 4} y=${middleOf(decoder, row) + 4}>${shortened(text, Math.floor(layout.words / LETTER))}</text>`)}
    ${!reading && html`<${Written} ...${{ layout, moment, units, machine, grouped }} />`}
    ${!reading && html`<${Output} ...${{ layout, moment, units, machine, chosen }} />`}
  </svg>`;
}

const encoderStep = (stage, layer) => (stage === "attend" ? 2 * layer + 1 : 2 * layer + 2);

// A token's vector after so many sub-layers.
function streamOf(stack, steps, token) {
  return steps > 0 ? stack.stages[Math.min(steps, stack.stages.length) - 1].streams[token] : stack.embedded[token];
}

// What has been computed of the translation so far.
function Written({ layout, moment, units, machine, grouped }) {
  const { stage, layer, at } = moment;
  const { x, encoder, decoder } = layout;
  const done = { fed: 0, self: 3 * layer + 1, cross: 3 * layer + 2, "decoder-feed": 3 * layer + 3, output: machine.decoder.stages.length }[stage];
  const after = (row) => (row < at ? machine.decoder.stages.length : done);
  const last = machine.decoder.stages.length;
  return html`${units.fed.slice(0, at + 1).map(({ main }, row) => {
    const steps = after(row);
    const y = middleOf(decoder, row);
    const looked = Math.floor((steps - 1) / 3) * 3 + 1;
    const fed = steps < last ? Math.floor(steps / 3) * 3 : last;
    const cells = (left, done) => html`<${Cells} values=${streamOf(machine.decoder, done, main)} left=${left} row=${y} layout=${layout} most=${machine.decoder.most[done]} />`;
    return html`<g key=${row} class=${row === at ? "now" : "past"}>
      ${cells(x.embedding, 0)}
      ${steps >= 1 && cells(x.middle, looked)}
      ${steps >= 2 && html`<circle class="node" cx=${x.cross + layout.cross / 2} cy=${y} r=${row === at ? 6 : 4} />`}
      ${steps >= 3 && html`<${Funnel} left=${x.decoderFeed} width=${layout.feed} row=${y} on=${row === at && stage === "decoder-feed"} />
        ${cells(x.state, fed)}`}
    </g>`;
  })}
  ${stage !== "fed" && lines([grouped.self(layer, at)], x.attend, layout.attend, decoder, decoder, stage === "self" ? 1 : 0.3, at)}
  ${stage !== "fed" && stage !== "self" && ribbons(grouped.cross(layer, at), layout, middleOf(encoder, 0), middleOf(decoder, at), stage === "cross" ? 1 : 0.35)}`;
}

// Attention between two columns of rows: those that look stand right, those that are looked at left.
function lines(weights, left, width, from, to, strength, first = 0) {
  return weights.flatMap((row, at) => row.map((weight, column) => weight >= FAINT && html`<path key=${`${at} ${column}`} class="link"
    d=${curve(left, middleOf(from, column), left + width, middleOf(to, at + first))} stroke-width=${(0.6 + 4.4 * weight).toFixed(2)} stroke-opacity=${(strength * Math.min(1, 0.12 + weight)).toFixed(3)} />`));
}

function curve(x1, y1, x2, y2) {
  const half = (x1 + x2) / 2;
  return `M ${x1.toFixed(1)} ${y1} C ${half.toFixed(1)} ${y1} ${half.toFixed(1)} ${y2} ${x2.toFixed(1)} ${y2}`;
}

// From what was read down to the word that looks.
function ribbons(weights, layout, firstRow, y, strength) {
  const from = layout.x.read + layout.strip + 2;
  const to = layout.x.cross + layout.cross / 2;
  return weights.map((weight, row) => weight >= FAINT && html`<path key=${`c${row}`} class="link cross"
    d=${`M ${from.toFixed(1)} ${firstRow + ROW * row} C ${(Math.max(from, to) + 46).toFixed(1)} ${firstRow + ROW * row} ${to.toFixed(1)} ${(y - 90).toFixed(1)} ${to.toFixed(1)} ${y}`}
    stroke-width=${(0.8 + 7 * weight).toFixed(2)} stroke-opacity=${(strength * Math.min(1, 0.15 + weight)).toFixed(3)} />`);
}

function Cells({ values, left, row, layout, most }) {
  const width = layout.strip / layout.cells;
  return html`<g class="cells"><rect class="bed" x=${left} y=${row - 7} width=${layout.strip} height="14" rx="2" />${values.slice(0, layout.cells).map((value, at) => html`<rect key=${at} class=${value < 0 ? "below" : "above"}
    x=${(left + at * width).toFixed(2)} y=${row - 7} width=${(width - 0.5).toFixed(2)} height="14" fill-opacity=${Math.min(1, Math.abs(value) / most).toFixed(3)} />`)}</g>`;
}

// Wide in the middle, as the feed-forward layer is.
function Funnel({ left, width, row, on }) {
  const half = left + width / 2;
  return html`<path class=${`funnel${on ? " on" : ""}`} d=${`M ${left} ${row - 2} L ${half} ${row - 9} L ${left + width} ${row - 2} L ${left + width} ${row + 2} L ${half} ${row + 9} L ${left} ${row + 2} Z`} />`;
}

// The likeliest pieces, and the way of the chosen one back to the input.
function Output({ layout, moment, units, machine, chosen }) {
  const { stage, at } = moment;
  if (stage !== "output") return null;
  const { narrow, x, decoder } = layout;
  const list = machine.next[units.produced[at].tokens[0]];
  const left = narrow ? 4 : x.output + 6;
  const width = narrow ? layout.width - 8 : layout.width - left - 4;
  const y = middleOf(decoder, at);
  const top = narrow ? layout.bottom + 26 : Math.max(decoder - 4, Math.min(y - 60, layout.bottom - 24 * list.length - 14));
  const label = 74;
  const back = at + 1 < units.fed.length ? middleOf(decoder, at + 1) : null;
  return html`<g class="output">
    <text class="part start" x=${left} y=${top - 6}>likeliest to come next</text>
    ${list.map(({ text, token, probability }, index) => html`<g key=${token} class=${token === chosen ? "chosen" : ""}>
      <text class="word" x=${left} y=${top + 24 * index + 16}>${shortened(text, 10)}</text>
      <rect class="chance-bar" x=${left + label} y=${top + 24 * index + 5} width=${Math.max(1, (width - label - 48) * probability).toFixed(1)} height="14" rx="2" />
      <text class="share" x=${left + width} y=${top + 24 * index + 16}>${probability.toFixed(3)}</text></g>`)}
    ${back && html`<path class="back" d=${narrow
      ? `M ${x.words + 14} ${layout.bottom + 6} L ${x.words + 14} ${back + 10}`
      : `M ${left + 60} ${top + 24 * list.length + 2} C ${left + 40} ${layout.height - 2} ${left - 20} ${layout.height - 6} ${left - 60} ${layout.height - 6} L ${x.words + 40} ${layout.height - 6} C ${x.words + 12} ${layout.height - 6} ${x.words + 14} ${back + 24} ${x.words + 14} ${back + 8}`} marker-end="url(#machine-arrow)" />
      <defs><marker id="machine-arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="tip" d="M 0 0 L 8 4 L 0 8 z" /></marker></defs>
      <text class="word ghost" x=${x.words + 20} y=${back + 5}>${shortened(units.produced[at].text, 12)}</text>`}
  </g>`;
}
