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

export function replaceAddress(view, values) {
  history.replaceState(null, "", addressOf(view, values));
}
