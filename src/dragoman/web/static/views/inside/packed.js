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
