/** The points of a sweep: the reader chooses one, or runs all of them, one after the other. */

import { computed, signal } from "@preact/signals";
import type { RunData } from "./data";
import type { Json } from "./protocol";
import { compare, described, other, point, problem, recheck, run, runInBackground } from "./state";

/** Maximum number of points that the page offers; `narrows run` has no such limit. */
export const MOST_POINTS = 64;

/** Runs of points of the scenario with this text. */
const all = signal<{ toml: string; runs: RunData[] }>({ toml: "", runs: [] });
/** Whether a run of all points is in progress. */
export const isRunningAll = signal(false);
/** The values of the factors of each point that the page offers. */
export const points = computed(() => (described.value?.points ?? []).slice(0, MOST_POINTS));
export const isSweep = computed(() => points.value.length > 1);
/** The runs of all points so far. After a change of the text, the list is empty. */
export const pointRuns = computed(() => (all.value.toml === run.value?.toml ? all.value.runs : []));
/** The runs that are drawn as faint lines: all other points, or the run that is compared. */
export const ghosts = computed((): RunData[] => {
  if (compare.value === "none") return [];
  if (pointRuns.value.length > 1) return pointRuns.value.filter((data) => data.point !== run.value?.point);
  return other.value === null ? [] : [other.value];
});

/** The factors of a point in words, e.g. `topology.rate = 10mbit, flows.0.cc = bbr`. */
export function pointLabel(factors: Record<string, Json>): string {
  return Object.entries(factors)
    .map(([key, value]) => `${key} = ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

export function choosePoint(index: number): void {
  point.value = Math.max(0, Math.min(index, points.value.length - 1));
  recheck();
}

/** Simulates all points. A change of the text, or the choice of a point, stops the simulation. */
export async function runAll(): Promise<void> {
  const current = run.value;
  if (current === null || !current.complete || isRunningAll.value) return;
  const runs = [current];
  all.value = { toml: current.toml, runs };
  isRunningAll.value = true;
  try {
    for (let index = 0; index < points.value.length; index++) {
      if (index === current.point) continue;
      const data = await runInBackground(current.toml, index);
      if (data === null) return;
      runs.push(data);
      runs.sort((a, b) => a.point - b.point);
      all.value = { toml: current.toml, runs: [...runs] };
    }
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error);
  } finally {
    isRunningAll.value = false;
  }
}
