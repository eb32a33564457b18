// What the page can show, in the order of its tabs. A view is a component that gets the values of the address; its
// modules are fetched when it is first shown.

import { html, useEffect, useState } from "./vendor/htm-preact.js";

function fetched(load) {
  let View = null;
  return function Fetched(props) {
    const [state, setState] = useState(View ? "there" : "");
    useEffect(() => {
      if (View) return;
      load().then((found) => { View = found; setState("there"); }, () => setState("failed"));
    }, []);
    if (state === "failed") return html`<p class="problem" role="alert">The service does not answer. Is “dragoman serve” still running?</p>`;
    return state ? html`<${View} ...${props} />` : null;
  };
}

export const views = [
  { id: "translate", title: "Translate", View: fetched(async () => (await import("./views/translate.js")).TranslateView) },
  { id: "inside", title: "Inside", View: fetched(async () => (await import("./views/inside.js")).InsideView) },
  { id: "learn", title: "Learn", View: fetched(async () => (await import("./views/learn.js")).LearnView) },
  { id: "training", title: "Training", View: fetched(async () => (await import("./views/training.js")).TrainingView) },
  { id: "compare", title: "Compare", View: fetched(async () => (await import("./views/compare.js")).CompareView) },
];
