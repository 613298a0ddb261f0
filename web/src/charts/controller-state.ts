/** Phases and curves from the traced variables of controllers. */

import type { Series } from "../data";

export interface Phase {
  name: string;
  from: number;
  to: number;
}

/** The values of BBR's variable `phase`. */
const PHASES: Record<number, string> = { 0: "Startup", 1: "Drain", 2: "ProbeBW", 3: "ProbeRTT" };

/** The visits to BBR's phases, by the samples of the variable `phase`. */
export function phasesOf(variables: Map<string, Series>): Phase[] {
  const { t_s = [], value = [] } = variables.get("phase") ?? {};
  const phases: Phase[] = [];
  t_s.forEach((t, i) => {
    const name = PHASES[value[i] as number] ?? `phase ${value[i]}`;
    const last = phases[phases.length - 1];
    if (last?.name === name) last.to = t;
    else {
      if (last) last.to = t;
      phases.push({ name, from: t, to: t });
    }
  });
  return phases;
}

/** A traced variable's unit, and the factor from the traced value to this unit. Unlisted variables have no unit. */
export function unitOf(key: string, cc: string): { unit: string; factor: number } {
  // The simulator counts rates in bytes per second.
  if (["bw", "max_bw"].includes(key)) return { unit: "Mbit/s", factor: 8e-6 };
  if (cc.startsWith("brf") && ["rate", "target"].includes(key)) return { unit: "Mbit/s", factor: 8e-6 };
  if (key === "min_rtt") return { unit: "ms", factor: 1e3 };
  if (key === "w_max") return { unit: "packets", factor: 1 };
  if (cc.startsWith("cubic") && key === "k") return { unit: "s", factor: 1 };
  return { unit: "", factor: 1 };
}

const MEANINGS: Record<string, string> = {
  bw: "estimated bandwidth of the path",
  cwnd_gain: "window as a multiple of bw x min_rtt",
  k: "time from a loss until CUBIC's curve reaches w_max",
  max_bw: "largest bandwidth of the last probes",
  min_rtt: "shortest RTT of the last seconds",
  pacing_gain: "sending rate as a multiple of bw; above 1, the flow probes for more bandwidth",
  round: "number of round trips so far",
  w_max: "window at the last loss, or less after fast convergence (0: none)",
};

/** The meaning of a traced variable in a few words, or an empty string. */
export function meaningOf(key: string, cc: string): string {
  // Other controllers have variables of the same name.
  if (key === "alpha") return cc.startsWith("dctcp") ? "moving average of the share of marked packets" : "";
  if (key === "k" && !cc.startsWith("cubic")) return "";
  return MEANINGS[key] ?? "";
}

/** CUBIC's constant C in segments per s^3 (410/1024 in Linux; RFC 9438 has 0.4). */
const C = 410 / 1024;

/**
 * CUBIC's curve W(t) = C (t - K)^3 + W_max, from the traced variables `w_max` and `k`.
 *
 * The traces do not have the start of an epoch. It is taken from the first sample with new values, so the curve can
 * be late by one interval of the samples.
 */
export function cubicCurve(
  variables: Map<string, Series>,
): { x: number[]; y: number[]; most: number[] } | null {
  const [maximum, period] = [variables.get("w_max"), variables.get("k")];
  if (maximum?.t_s === undefined || maximum.value === undefined || period?.value === undefined) return null;
  const { t_s: x, value: most } = maximum;
  const k = period.value;
  let start = Number.NaN;
  const y = x.map((t, i) => {
    const isNew = i === 0 || most[i] !== most[i - 1] || k[i] !== k[i - 1];
    if (isNew) start = (k[i] as number) > 0 ? t : Number.NaN;
    return C * (t - start - (k[i] as number)) ** 3 + (most[i] as number);
  });
  return { x, y, most: most.map((value) => (value > 0 ? value : Number.NaN)) };
}
