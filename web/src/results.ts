/** The rows of the table of results: final values after a run, and values from the samples so far during a run. */

import { flowName } from "./charts/lines";
import type { FlowRow, LinkRow, RunData, SeedData } from "./data";

/** A figure over the seeds of a run. */
export interface Figure {
  mean: number;
  low: number;
  high: number;
}

export interface ResultRow {
  /** Number of the flow. */
  flow: number;
  name: string;
  cc: string;
  group: number;
  goodput: Figure;
  rtt: Figure;
  rttP95: Figure;
  retransmits: Figure;
  /** Retransmissions, in percent of the packets that the flow has sent. */
  lossShare: Figure;
  timeouts: Figure;
  fct: Figure;
}

/** Maximum number of flows or links in a table. */
export const MOST_ROWS = 24;

export function resultRows(run: RunData, most = MOST_ROWS): ResultRow[] {
  const numbers = new Set([...run.first.flows.keys(), ...run.first.flowRows.keys()]);
  const seeds = run.seeds.filter((seed) => seed.now > 0);
  return run
    .sorted(numbers)
    .slice(0, most)
    .map((flow) => {
      const group = run.groupOf(flow);
      const over = (final: (row: FlowRow) => number, live: (seed: SeedData) => number) =>
        figureOf(
          seeds.map((seed) => {
            const row = run.rowIn(seed, flow);
            return row ? final(row) : live(seed);
          }),
        );
      const last = (seed: SeedData, column: string) =>
        run.seriesIn(seed, flow)?.[column]?.at(-1) ?? Number.NaN;
      return {
        flow,
        name: flowName(run, flow),
        cc: run.network.flows[group]?.cc ?? "",
        group,
        goodput: over(
          (row) => row.goodput_bps * 1e-6,
          (seed) => mean(run.seriesIn(seed, flow)?.goodput_bps) * 1e-6,
        ),
        rtt: over(
          (row) => row.rtt_mean_s * 1e3,
          (seed) => last(seed, "srtt_s") * 1e3,
        ),
        rttP95: over(
          (row) => row.rtt_p95_s * 1e3,
          () => Number.NaN,
        ),
        retransmits: over(
          (row) => row.retransmits,
          (seed) => last(seed, "retransmits"),
        ),
        lossShare: over(
          (row) => (100 * row.retransmits) / row.sent_packets,
          () => Number.NaN,
        ),
        timeouts: over(
          (row) => row.timeouts,
          () => Number.NaN,
        ),
        fct: over(
          (row) => row.fct_s * 1e3,
          () => Number.NaN,
        ),
      };
    });
}

/** Flows whose times differ by less than this share of the measured time are measured over the same time. */
const SAME_TIME = 0.01;

/** Whether flows of a seed were measured over different times, as `at_different_times` of narrows.results.summary. */
export function areApart(run: RunData): boolean {
  const { warmup_s, duration_s } = run.network;
  return run.seeds.some(({ flowRows }) => {
    const measured = [...flowRows.values()].filter((row) => Number.isFinite(row.goodput_bps));
    if (measured.length === 0) return false;
    const begins = measured.map((row) => Math.max(warmup_s, row.start_s));
    const ends = measured.map((row) => (Number.isFinite(row.end_s) ? row.end_s : duration_s));
    const spread = Math.max(range(begins), range(ends));
    return spread > SAME_TIME * (Math.max(...ends) - Math.min(...begins));
  });
}

function range(values: number[]): number {
  return Math.max(...values) - Math.min(...values);
}

export interface LinkResult {
  name: string;
  utilisation: Figure;
  queueing: Figure;
  drops: Figure;
  marks: Figure;
  losses: Figure;
}

/** Links that were at least half used, or that dropped, lost or marked packets, as in the output of `narrows run`. */
export function linkResults(run: RunData): LinkResult[] {
  return [...run.first.linkRows.values()]
    .filter((row) => row.utilisation >= 0.5 || row.dropped_packets + row.random_losses + row.marks > 0)
    .slice(0, MOST_ROWS)
    .map(({ name, link }) => {
      const over = (value: (row: LinkRow) => number) =>
        figureOf(
          run.seeds.flatMap((seed) => {
            const row = seed.linkRows.get(link);
            return row ? [value(row)] : [];
          }),
        );
      return {
        name,
        utilisation: over((row) => row.utilisation * 100),
        queueing: over((row) => row.sojourn_mean_s * 1e3),
        drops: over((row) => row.dropped_packets),
        marks: over((row) => row.marks),
        losses: over((row) => row.random_losses),
      };
    });
}

function figureOf(values: number[]): Figure {
  const known = values.filter(Number.isFinite);
  return { mean: mean(known), low: Math.min(...known), high: Math.max(...known) };
}

function mean(values: number[] = []): number {
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}
