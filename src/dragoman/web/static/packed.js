// Many numbers in two bytes each, as the service packs them: inspection/uint16_codec.py.

export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const steps = new Uint16Array(buffer, 4 + length);
  return { header, steps, value: (at) => header.low + ((header.high - header.low) * steps[at]) / 65535 };
}
