// Where the view's numbers come from: the service, or the file that the page was saved as.

import * as api from "../../api.js";
import { tables, unpack } from "./packed.js";

export const live = {
  saved: false,
  measured: [],
  look: async (question, signal) => (await api.inside("", question, signal)).json(),
  attention: async (question, kind, layer, signal) =>
    unpack(await (await api.inside("/attention", { ...question, kind, layer }, signal)).arrayBuffer()),
  intervene: async (question, signal) => (await api.inside("/intervene", question, signal)).json(),
  effects: async (question, kind, layer, signal) => (await api.inside("/effects", { ...question, kind, layer }, signal)).json(),
  lens: async (question, signal) => (await api.inside("/lens", question, signal)).json(),
  contributions: async (question, signal) => tables(await (await api.inside("/contributions", question, signal)).arrayBuffer()),
  contrast: async (question, signal) => (await api.inside("/contrast", question, signal)).json(),
  page: async (question, state) => (await api.inside("/page", { ...question, state })).blob(),
};

// Everything that was there when it was saved; nothing can be asked of the model any more.
export function savedIn(kept) {
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;
  return {
    saved: true,
    measured: kept.effects,
    look: async () => kept.seen,
    attention: async (question, kind, layer) => unpack(bytes(kept.attention[`${kind}.${layer}`])),
    intervene: async () => kept.outcome,
    lens: async () => kept.lens,
    contributions: async () => tables(bytes(kept.contributions)),
    contrast: async () => kept.contrast,
  };
}
