// For views that need a model: they wait for it where the run is still training its first.

import { html, useEffect, useState } from "../vendor/htm-preact.js";
import * as api from "../api.js";

const LOOK_AGAIN = 3000; // milliseconds

export function needsModel(View) {
  return function WithModel({ values }) {
    const [about, setAbout] = useState(null);
    const [failure, setFailure] = useState("");
    const [looks, setLooks] = useState(0);
    useEffect(() => {
      let timer = 0;
      api.service().then((found) => {
        setAbout(found);
        if (!found.pairs.length) timer = setTimeout(() => setLooks(looks + 1), LOOK_AGAIN);
      }, (error) => setFailure(error.message));
      return () => clearTimeout(timer);
    }, [looks]);
    if (failure) return html`<p class="problem" role="alert">${failure}</p>`;
    if (about && !about.pairs.length) {
      return html`<section class="sheet study" aria-label="No model yet"><h1 class="unseen">No model yet</h1>
        <p>This run has no model yet: it has its first after its first validation, and this page then appears by
          itself. <a href="#/training">Training</a> shows how far it is.</p></section>`;
    }
    return about && html`<${View} about=${about} values=${values} />`;
  };
}
