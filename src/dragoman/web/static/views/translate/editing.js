// The text of the translation's field, and what a change of it means for the sentences: pure functions.

// As it is shown: what stood around the sentences, and where nothing stood between two of them a space, so that one sees
// where they end. Each sentence has its place in it.
export function shownText({ segments, before, after }) {
  let text = "";
  const places = segments.map((segment, at) => {
    text += at ? before[at] || " " : before[at].trimStart();
    const start = text.length;
    text += segment.text;
    return { start, end: text.length };
  });
  return { text: text + after.trimEnd(), places };
}

// The sentence at a place in the text: the one that it is in or at the edge of; -1: none.
export function sentenceAt(places, position) {
  const inside = places.findIndex(({ start, end }) => start <= position && position < end);
  return inside >= 0 ? inside : places.findIndex(({ end }) => end === position);
}

// What changed between two texts, as one stretch: [start, end before, end after]. `caret`, where the change ended, tells
// which of equal characters beside each other it was.
function stretch(before, after, caret) {
  const tail = Math.min(after.length - caret, before.length);
  let kept = 0;
  while (kept < tail && before[before.length - 1 - kept] === after[after.length - 1 - kept]) kept += 1;
  const most = Math.min(before.length, after.length) - kept;
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  return { start, end: before.length - kept, now: after.length - kept };
}

// The sentences that another text of the field changes, with their new texts. What stands between sentences is the
// source's: it cannot be changed, and what is typed there belongs to the sentence before it.
export function editsOf({ text, places }, typed, caret) {
  if (typed === text || !places.length) return [];
  const { start, end, now } = stretch(text, typed, caret);
  const written = typed.slice(start, now);
  let first = places.findIndex((place) => place.end >= start);
  if (first < 0) first = places.length - 1;
  else if (start < places[first].start && start === end && first > 0) first -= 1;
  let last = first;
  while (last + 1 < places.length && places[last + 1].start < end) last += 1;
  const edits = [];
  for (let at = first; at <= last; at += 1) {
    const place = places[at];
    const head = at === first ? text.slice(place.start, Math.max(place.start, Math.min(start, place.end))) : "";
    const tail = at === last ? text.slice(Math.max(end, place.start), Math.max(end, place.end)) : "";
    const own = at === first ? head + (at === last ? written + tail : written) : tail;
    if (own !== text.slice(place.start, place.end)) edits.push({ at, text: own });
  }
  return edits;
}

// The word that is being typed: where it begins, and what of it is there.
export function wordBefore(text, caret) {
  const begun = text.slice(0, caret).match(/[\p{L}\p{M}\p{N}’'-]*$/u)[0];
  return { start: caret - begun.length, begun };
}
