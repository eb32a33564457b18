// The weights of all heads of a sub-layer, and of one.

import { unpack as read } from "../../packed.js";

export function unpack(buffer) {
  const { header, steps } = read(buffer);
  const [heads, rows, columns] = header.shape;
  return { heads, rows, columns, low: header.low, high: header.high, steps };
}

// The weights of one head.
export function headOf(packed, head) {
  const size = packed.rows * packed.columns;
  return { ...packed, steps: packed.steps.subarray(head * size, (head + 1) * size) };
}

export const weightAt = (head, row, column) => head.low + ((head.high - head.low) * head.steps[row * head.columns + column]) / 65535;

// Several tables one after the other, by name: each as one head, so that it is drawn like one.
export function tables(buffer) {
  const { header, steps } = read(buffer);
  let first = 0;
  return Object.fromEntries(header.parts.map(({ name, shape: [rows, columns] }) => {
    const part = { rows, columns, low: header.low, high: header.high, steps: steps.subarray(first, first + rows * columns) };
    first += rows * columns;
    return [name, part];
  }));
}
