// For views that need a model: they wait for it where the run is still training its first.

import { html, useEffect, useState } from "../vendor/htm-preact.js";
import * as api from "../api.js";

const LOOK_AGAIN = 3000; // milliseconds

const NEEDS = {
  translator: {
    there: ({ pairs }) => pairs.length > 0,
    awaited: ({ waiting }) => waiting.length > 0,
    otherwise: html`Nothing is translated here: the run that is served is a parser. <a href="#/parse">Parse</a> a
      sentence with it.`,
  },
  parser: {
    there: ({ parser }) => Boolean(parser?.has_model),
    awaited: ({ parser }) => Boolean(parser),
    otherwise: html`No parser is served here. Make one with <code>dragoman parse train</code>, and serve it beside the
      others: <code>dragoman serve RUN RUN</code>.`,
  },
};

export const needsModel = (View) => needs("translator", View);

export function needs(kind, View) {
  const { there, awaited, otherwise } = NEEDS[kind];
  return function WithModel({ values }) {
    const [about, setAbout] = useState(null);
    const [failure, setFailure] = useState("");
    const [looks, setLooks] = useState(0);
    useEffect(() => {
      let timer = 0;
      api.service().then((found) => {
        setAbout(found);
        setFailure("");
        if (!there(found) && awaited(found)) timer = setTimeout(() => setLooks(looks + 1), LOOK_AGAIN);
      }, (error) => {
        setFailure(error.message);
        timer = setTimeout(() => setLooks(looks + 1), LOOK_AGAIN);
      });
      return () => clearTimeout(timer);
    }, [looks]);
    if (failure) return html`<p class="problem" role="alert">${failure}</p>`;
    if (about && !there(about) && !awaited(about)) {
      return html`<section class="sheet study" aria-label=${`No ${kind}`}><h1 class="unseen">No ${kind}</h1><p>${otherwise}</p></section>`;
    }
    if (about && !there(about)) {
      return html`<section class="sheet study" aria-label="No model yet"><h1 class="unseen">No model yet</h1>
        <p>This run has no model yet: it has its first after its first validation, and this page then appears by
          itself. <a href="#/training">Training</a> shows how far it is.</p></section>`;
    }
    return about && html`<${View} about=${about} values=${values} />`;
  };
}
