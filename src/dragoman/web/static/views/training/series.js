// What is made of the points of a log: pure functions, and the file that one saves.

// The exponential moving average, corrected for its beginning as Adam's averages are: the first is the first point.
export function movingAverage(points, weight) {
  let [sum, total] = [0, 0];
  return points.map(([x, y]) => {
    sum = weight * sum + (1 - weight) * y;
    total = weight * total + (1 - weight);
    return [x, sum / total];
  });
}

// Seconds until the training is done, by what it may use up and how fast it goes; null: that cannot be said yet.
export function secondsLeft(train, { steps, minutes }) {
  const last = train.at(-1);
  if (!last || train.length < 2) return null;
  const before = train[Math.max(0, train.length - 11)];
  const pace = (last.seconds - before.seconds) / (last.step - before.step); // of the last lines: it may have changed
  const bySteps = pace > 0 ? pace * (steps - last.step) : Infinity;
  const byTime = minutes ? 60 * minutes - last.seconds : Infinity;
  const left = Math.min(bySteps, byTime);
  return Number.isFinite(left) ? Math.max(0, left) : null;
}

const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

// All points of these logs as CSV: a column for everything that any of them has.
export function asCsv(logs) {
  const rows = logs.flatMap(({ name, log }) => ["train", "valid"].flatMap((part) => log[part].map((point) => ({ run: name, part, ...point }))));
  const columns = [...new Set(rows.flatMap(Object.keys))];
  const line = (row) => columns.map((column) => quoted(row[column] === undefined || row[column] === null ? "" : String(row[column]))).join(",");
  return `${[columns.join(","), ...rows.map(line)].join("\n")}\n`;
}

export function save(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
