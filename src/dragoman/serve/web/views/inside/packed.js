// Many numbers in two bytes each, as the service sends them: docs/inside.md.

export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const [heads, rows, columns] = header.shape;
  return { heads, rows, columns, low: header.low, high: header.high, steps: new Uint16Array(buffer, 4 + length) };
}

// The weights of one head.
export function headOf(packed, head) {
  const size = packed.rows * packed.columns;
  return { ...packed, steps: packed.steps.subarray(head * size, (head + 1) * size) };
}

export const weightAt = (head, row, column) => head.low + ((head.high - head.low) * head.steps[row * head.columns + column]) / 65535;
