/** Values of scenario files as numbers and back, and figures for people. */

const RATE_UNITS: Record<string, number> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const TIME_UNITS: Record<string, number> = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const SIZE_UNITS: Record<string, number> = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 1024, mib: 1024 ** 2 };

/** A rate such as `"20mbit"` in bit/s, or NaN if it has another form. */
export function parseRate(text: string): number {
  const match = /^\s*([\d.]+)\s*([kmgt]?)(?:bit|bps)(?:\/s)?\s*$/i.exec(text);
  return match ? Number(match[1]) * (RATE_UNITS[(match[2] ?? "").toLowerCase()] ?? Number.NaN) : Number.NaN;
}

export function writeRate(bps: number): string {
  if (bps >= 1e9) return `${round(bps / 1e9)}gbit`;
  if (bps >= 1e6) return `${round(bps / 1e6)}mbit`;
  return `${round(bps / 1e3)}kbit`;
}

/** A time such as `"20ms"` in s, or NaN. */
export function parseTime(value: unknown): number {
  if (value === 0) return 0;
  const match = /^\s*([\d.]+)\s*(ns|us|ms|s|min|h)\s*$/.exec(String(value));
  return match ? Number(match[1]) * (TIME_UNITS[match[2] ?? ""] ?? Number.NaN) : Number.NaN;
}

export function writeTime(seconds: number): string {
  if (seconds === 0) return "0s";
  if (seconds >= 1) return `${round(seconds)}s`;
  if (seconds >= 1e-3) return `${round(seconds * 1e3)}ms`;
  return `${round(seconds * 1e6)}us`;
}

export type LengthUnit = "bdp" | "p" | "bytes" | "infinite";

/** The length of a queue such as `"2bdp"`, `"100p"` or `"64kB"`. */
export function parseLength(text: string): { amount: number; unit: LengthUnit } | null {
  if (text.trim() === "infinite") return { amount: Number.POSITIVE_INFINITY, unit: "infinite" };
  const match = /^\s*([\d.]+)\s*(bdp|p|[kmg]?i?b)\s*$/i.exec(text);
  if (!match) return null;
  const [amount, unit] = [Number(match[1]), (match[2] ?? "").toLowerCase()];
  if (unit === "bdp" || unit === "p") return { amount, unit };
  return { amount: amount * (SIZE_UNITS[unit] ?? Number.NaN), unit: "bytes" };
}

export function writeLength(amount: number, unit: LengthUnit): string {
  if (unit === "infinite") return "infinite";
  if (unit === "bdp") return `${round(amount)}bdp`;
  if (unit === "p") return `${Math.max(1, Math.round(amount))}p`;
  return amount >= 1e6 ? `${round(amount / 1e6)}MB` : `${round(amount / 1e3)}kB`;
}

/** A probability such as `0.001` or `"0.1%"`, or NaN. */
export function parseProbability(value: unknown): number {
  if (typeof value === "number") return value;
  const match = /^\s*([\d.]+)\s*(%?)\s*$/.exec(String(value));
  return match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
}

export function writeProbability(p: number): string {
  return p === 0 ? "0" : `${round(p * 100)}%`;
}

/** Rounds to three significant digits, as sliders need no more. */
function round(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** A figure for people: three significant digits, with M (10^6) and G (10^9) for large values. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9) return `${figure(value / 1e9)} G`;
  if (size >= 1e6) return `${figure(value / 1e6)} M`;
  if (size < 1e-3) return value.toExponential(1);
  if (size >= 100) return value.toFixed(0);
  return Number(value.toPrecision(3)).toString();
}

/** A whole number with separators between thousands. */
export function count(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "–";
}

export function clock(seconds: number, duration: number): string {
  if (duration >= 10) return `${seconds.toFixed(2)} s`;
  if (duration >= 1) return `${seconds.toFixed(3)} s`;
  return `${(seconds * 1e3).toFixed(2)} ms`;
}

/** A value as TOML. */
export function toml(value: string | number | boolean): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
