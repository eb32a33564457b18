// How numbers are written, the same everywhere.

const minus = (text) => text.replace("-", "−");

export const whole = (value) => Math.round(value).toLocaleString("en");
export const fixed = (digits) => (value) => minus(value.toFixed(digits));
export const one = fixed(1);
export const two = fixed(2);
export const three = fixed(3);

// 0.0033 as 3.3e−3; perplexities from 2 to 10,000 as they are.
export const short = (value) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10000) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
  if (size >= 0.01) return minus(String(Number(value.toPrecision(3))));
  return minus(Number(value.toPrecision(2)).toExponential());
};

export function clock(seconds) {
  const all = Math.round(seconds);
  const parts = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const [hours, minutes, rest] = parts.map((part, at) => (at ? String(part).padStart(2, "0") : String(part)));
  return parts[0] ? `${hours}:${minutes}:${rest}` : `${parts[1]}:${rest}`;
}
