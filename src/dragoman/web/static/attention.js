// Attention as a table: a row for each token that looks, a column for each token that is looked at.

import { html } from "./vendor/htm-preact.js";
import { shownToken } from "./views/inside/state.js";
import { percent } from "./views/translate/words.js";

export function AttentionTable({ caption, rows, columns, weight, current = -1 }) {
  return html`<div class="attention" role="region" tabindex="0" aria-label=${caption}>
    <table>
      <caption class="unseen">${caption}</caption>
      <thead><tr><td></td>${columns.map((token, at) => html`<th scope="col" key=${at}><span>${shownToken(token)}</span></th>`)}</tr></thead>
      <tbody>${rows.map((token, row) => html`<tr key=${row} class=${row === current ? "current" : ""}>
        <th scope="row">${shownToken(token)}</th>
        ${columns.map((other, column) => {
          const value = weight(row, column);
          return html`<td key=${column} style=${{ "--weight": value.toFixed(4) }} data-weight=${value.toFixed(4)}
            title=${`${shownToken(token)} → ${shownToken(other)}: ${percent(value)}`}><span class="unseen">${percent(value)}</span></td>`;
        })}
      </tr>`)}</tbody>
    </table>
  </div>`;
}

// Which layer and which head is shown: the mean of all heads is -1.
export function HeadChoice({ layers, heads, layer, head, onChoose }) {
  const count = (many) => Array.from({ length: many }, (_, at) => at);
  return html`<span class="controls heads">
    <label>Layer <select value=${layer} onChange=${(event) => onChoose(Number(event.target.value), head)}>
      ${count(layers).map((at) => html`<option value=${at} key=${at}>${at}</option>`)}
    </select></label>
    <label>Head <select value=${head} onChange=${(event) => onChoose(layer, Number(event.target.value))}>
      <option value="-1">mean of all</option>
      ${count(heads).map((at) => html`<option value=${at} key=${at}>${at}</option>`)}
    </select></label>
  </span>`;
}
