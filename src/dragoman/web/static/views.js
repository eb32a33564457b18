// What the page can show, in the order of its tabs. A view is a component that gets the values of the address; its
// modules are fetched when it is first shown. Some need a translator to be served, one a parser.

import { html, useEffect, useState } from "./vendor/htm-preact.js";

function fetched(load) {
  let View = null;
  return function Fetched(props) {
    const [state, setState] = useState(View ? "there" : "");
    const [loading] = useState(() => View || load()); // at once: an effect would wait for the first frame
    useEffect(() => {
      if (View) return;
      loading.then((found) => { View = found; setState("there"); }, () => setState("failed"));
    }, []);
    if (state === "failed") return html`<p class="problem" role="alert">The service does not answer.</p>`;
    return state ? html`<${View} ...${props} />` : null;
  };
}

export const views = [
  { id: "translate", title: "Translate", needs: "translator", View: fetched(async () => (await import("./views/translate.js")).TranslateView) },
  { id: "parse", title: "Parse", needs: "parser", View: fetched(async () => (await import("./views/parse.js")).ParseView) },
  { id: "inside", title: "Inside", needs: "translator", View: fetched(async () => (await import("./views/inside.js")).InsideView) },
  { id: "learn", title: "Learn", needs: "translator", View: fetched(async () => (await import("./views/learn.js")).LearnView) },
  { id: "training", title: "Training", View: fetched(async () => (await import("./views/training.js")).TrainingView) },
  { id: "compare", title: "Compare", View: fetched(async () => (await import("./views/compare.js")).CompareView) },
];

// Those for which what they need is served; `about` is what the service says of itself, empty where it says nothing.
export function viewsFor(about) {
  const served = {
    parser: Boolean(about.parser),
    translator: !about.parser || about.pairs.length + about.waiting.length > 0,
  };
  return views.filter(({ needs }) => !needs || served[needs]);
}
