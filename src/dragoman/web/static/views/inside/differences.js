// Which words of two texts differ: the longest sequence of words that both have stays unmarked.

// Two lists of {text, marked}; joined, the texts of each are the text that was given.
export function differences(before, after) {
  const [one, other] = [before, after].map((text) => text.match(/\s*\S+|\s+$/g) ?? []);
  const [a, b] = [one, other].map((words) => words.map((word) => word.trim()));
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const same = [new Set(), new Set()];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      same[0].add(i);
      same[1].add(j);
      i += 1;
      j += 1;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) i += 1;
    else j += 1;
  }
  return [one, other].map((words, side) => joined(words.map((text, at) => ({ text, marked: !same[side].has(at) }))));
}

function joined(parts) {
  const found = [];
  const add = (text, marked) => {
    if (found.length && found[found.length - 1].marked === marked) found[found.length - 1].text += text;
    else if (text) found.push({ text, marked });
  };
  for (const { text, marked } of parts) { // the space before what is marked is not
    const starts = marked && !(found.length && found[found.length - 1].marked) ? text.length - text.trimStart().length : 0;
    add(text.slice(0, starts), false);
    add(text.slice(starts), marked);
  }
  return found;
}
