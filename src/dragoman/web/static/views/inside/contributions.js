// What a produced token came from: contributions through encoder, cross-attention and decoder (ALTI+), not weights alone.

import { html, useMemo, useState } from "../../vendor/htm-preact.js";
import { Failure } from "../failure.js";
import { useAnswer } from "./answer.js";
import { useColours } from "./drawing.js";
import { Graph } from "./graph.js";
import { HeatMap } from "./heat.js";
import { weightAt } from "./packed.js";
import { positionOf, rowsOf, shownToken } from "./state.js";
import { Strip } from "./strip.js";

const LISTED = 10;

export function Contributions({ data, seen, state, change }) {
  const key = JSON.stringify([seen.question, state.changes]);
  const { answer: tables, problem, retry } = useAnswer((signal) => data.contributions({ ...seen.question, changes: state.changes }, signal), key);
  const colours = useColours();
  const [column, setColumn] = useState(-1);
  const at = positionOf(seen, state.at);
  const rows = useMemo(() => rowsOf(seen, "cross"), [seen]);
  const columns = useMemo(() => [...seen.source.map(shownToken), ...seen.fed.map((token) => `…${shownToken(token)}`)], [seen]);
  const choose = (position) => change({ at: position });
  return html`<section class="sheet contributions" aria-labelledby="contributions-title">
    <div class="sheet-head"><h2 id="contributions-title">What each token came from</h2>
      <span class="note">Shares of the source’s tokens and of those said before, through all layers and residuals.
        How far they agree with leaving tokens out is measured: it is a tendency, no proof.</span></div>
    <${Strip} seen=${seen} chosen=${at} onChoose=${choose} />
    ${problem && html`<${Failure} problem=${problem} retry=${retry} />`}
    ${!tables && !problem && html`<p class="note">Computing …</p>`}
    ${tables && html`<div class="large">
        <${Graph} tables=${tables} seen=${seen} at=${at} />
        <${Shares} total=${tables.total} seen=${seen} at=${at} />
      </div>
      <h3>All tokens</h3><p class="note">Rows come from columns: the source, then, with dots before them, the tokens said before. Rows sum to 1.</p>
      <div class="whole"><${HeatMap} head=${tables.total} rows=${rows} columns=${columns} row=${at} column=${column} colours=${colours}
        name="Contributions" verb="came from" onChoose=${(row, over) => { setColumn(over); choose(row); }} /></div>`}
  </section>`;
}

function Shares({ total, seen, at }) {
  const every = [...seen.source.map((token, index) => ({ token, index, side: "source" })), ...seen.fed.map((token, index) => ({ token, index, side: "said" }))]
    .map((one, column) => ({ ...one, column, share: weightAt(total, at, column) }))
    .filter(({ side, index }) => side === "source" || index <= at);
  const ofSource = every.filter(({ side }) => side === "source").reduce((sum, { share }) => sum + share, 0);
  const order = every.sort((one, other) => other.share - one.share);
  const rest = order.slice(LISTED).reduce((sum, { share }) => sum + share, 0);
  return html`<div class="row-detail shares">
    <p class="note">“${shownToken(seen.produced[at])}” came from the source by <b class="number from-source">${ofSource.toFixed(2)}</b>, from what was said
      before by <b class="number">${(1 - ofSource).toFixed(2)}</b></p>
    <ol class="weights">${order.slice(0, LISTED).map(({ token, side, column, share }) => html`<li key=${column} data-column=${column} class=${side}>
      <span>${side === "said" ? "…" : ""}${shownToken(token)}</span>
      <meter class="chance" min="0" max="1" value=${share} aria-label=${`share of ${shownToken(token)}`}></meter>
      <span class="share">${share.toFixed(4)}</span></li>`)}</ol>
    ${order.length > LISTED && html`<p class="note">and ${order.length - LISTED} more with ${rest.toFixed(4)} in all</p>`}
  </div>`;
}
