// What stays in this browser: read and written as JSON under one name each. Where storage is switched off or full it lasts
// until the page is closed.

const open = new Map();

export function kept(name, otherwise) {
  if (open.has(name)) return open.get(name);
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function keep(name, value) {
  open.set(name, value);
  try {
    localStorage.setItem(name, JSON.stringify(value));
    open.delete(name);
  } catch {
    // until the page is closed
  }
}
