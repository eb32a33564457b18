// What a person chose and typed, kept with their sentence: it may move when text is typed before it, and as long as it
// stays as it is the choice stands. What is kept is {text, list}: the list's places are those in the text.

const NONE = { text: "", list: [] };
const kept = new Map(); // languages: the choices made in them

const nameOf = ({ source, target }) => `${source} ${target}`;

export const choicesIn = (languages) => kept.get(nameOf(languages)) ?? NONE;

export function keepChoices(languages, text, segments) {
  const list = segments.filter((one) => one.changed).map(({ start, source, text: said, tokens, prefix, explanation, edited }) => (
    { start, source, values: { text: said, tokens, prefix, explanation, edited, changed: true, touched: true } }
  ));
  kept.set(nameOf(languages), { text, list });
}

// A function that finds the choice of each sentence of another text, asked in the order of its sentences. Where only one
// stretch of the text was changed, a sentence before or after it is known by its place, even if the same stands twice.
export function choicesFor(choices, text) {
  const left = placedIn(choices, text);
  return ({ start, source }) => {
    const same = left.filter((one) => one.source === source);
    const found = same.find((one) => one.start === start) ?? same.find((one) => one.start === null);
    if (!found) return null;
    left.splice(left.indexOf(found), 1);
    return found.values;
  };
}

// Each choice with its place in the new text; null: where the text was changed, so that only its words tell.
function placedIn({ text: before, list }, text) {
  const shorter = Math.min(before.length, text.length);
  let head = 0;
  while (head < shorter && before[head] === text[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before[before.length - 1 - tail] === text[text.length - 1 - tail]) tail += 1;
  return list.map((one) => {
    if (one.start + one.source.length <= head) return { ...one };
    if (one.start >= before.length - tail) return { ...one, start: one.start + text.length - before.length };
    return { ...one, start: null };
  });
}
