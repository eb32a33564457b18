// The address after # says which view is shown and with what: #/translate?from=en&to=de&text=... Without a view it is
// the first that what is served can show.
// It never leaves the browser, so neither does the text in it.

export function readAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path, values: Object.fromEntries(new URLSearchParams(query)) };
}

export function addressOf(view, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  const query = new URLSearchParams(kept).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

const left = new Map(); // view: the values that it last had
const followed = new Map(); // view: the text of Translate that it was last opened with

let shown = location.hash; // the address that the view on the page was told of
addEventListener("hashchange", () => { shown = location.hash; });

// Views call this in a layout effect, and read a changed address in one: a plain effect is late, so that a view that is
// left at once would forget what was typed last, and one that is typed into at once would go back to its address.
export function replaceAddress(view, values) {
  left.set(view, values);
  if (location.hash !== shown) return; // another view was chosen, and is about to be shown
  if (location.protocol === "about:") return; // within another page, which has the address
  history.replaceState(null, "", addressOf(view, values));
  shown = location.hash;
}

// Where a tab leads: to the view as it was left; those that look into a sentence, to one that was typed since.
export function tabAddress(view) {
  const own = left.get(view) ?? {};
  const { from, to, text } = left.get("translate") ?? {};
  const looks = view === "inside" || view === "learn";
  if (!looks || !text?.trim() || own.text === text || followed.get(view) === text) return addressOf(view, own);
  followed.set(view, text);
  return addressOf(view, { from, to, text });
}
