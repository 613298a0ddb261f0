/** The lines of each figure, made from the rows of a run. */

import { colour, colourIndex, dash, inks } from "../colours";
import type { RunData, Series } from "../data";

export interface Line {
  label: string;
  colour: string;
  dash: number[];
  width: number;
  /** Lines of a comparison are drawn faintly. */
  isGhost: boolean;
  x: number[];
  y: number[];
  /** Range over the seeds of the run. */
  low?: number[];
  high?: number[];
  fill?: boolean;
  /** The readout and the range of the axis ignore this line. */
  isReference?: boolean;
}

export interface Metric {
  id: "goodput" | "window" | "rtt" | "queue";
  title: string;
  unit: string;
  column: string;
  factor: number;
}

export const METRICS: Metric[] = [
  { id: "goodput", title: "Goodput", unit: "Mbit/s", column: "goodput_bps", factor: 1e-6 },
  { id: "window", title: "Congestion window", unit: "packets", column: "cwnd", factor: 1 },
  { id: "rtt", title: "Smoothed RTT", unit: "ms", column: "srtt_s", factor: 1e3 },
  { id: "queue", title: "Queue", unit: "packets", column: "queue_packets", factor: 1 },
];

/** Maximum number of flows in a figure. More lines cannot be distinguished, and are slow to draw. */
export const MOST_LINES = 100;

/** The lines of a metric for a run. */
export function linesOf(metric: Metric, run: RunData, isGhost: boolean): Line[] {
  if (metric.id === "queue") return queueLines(metric, run, isGhost);
  const lines = run
    .sorted(run.first.flows.keys())
    .slice(0, MOST_LINES)
    .map((flow) => flowLine(metric, run, flow, isGhost));
  if (metric.id === "goodput" && !isGhost) lines.push(...capacityLine(run));
  return lines;
}

/** The name of a flow, as in the table of results. */
export function flowName(run: RunData, flow: number): string {
  const known = run.first.names.get(flow);
  if (known !== undefined) return known.name;
  return run.network.flows[run.groupOf(flow)]?.name ?? `flow ${flow}`;
}

function flowLine(metric: Metric, run: RunData, flow: number, isGhost: boolean): Line {
  const all = run.seeds.map((seed) => run.seriesIn(seed, flow)).filter((series) => series !== undefined);
  const index = colourIndex(run.network, run.groupOf(flow));
  return {
    label: flowName(run, flow),
    colour: colour(index),
    dash: dash(index),
    width: run.first.flows.size > 8 ? 1 : 1.75,
    isGhost,
    ...over(all, metric),
  };
}

function queueLines(metric: Metric, run: RunData, isGhost: boolean): Line[] {
  if (run.watched === null) return [];
  const link = run.watched;
  const all = run.seeds.map((seed) => seed.links.get(link)).filter((series) => series !== undefined);
  if (all.length === 0) return [];
  return [
    {
      label: run.network.links[link]?.name ?? "",
      colour: inks.value.grey,
      dash: [],
      width: 1.5,
      isGhost,
      fill: !isGhost,
      ...over(all, metric),
    },
  ];
}

function capacityLine(run: RunData): Line[] {
  const series = run.watched === null ? undefined : run.first.links.get(run.watched);
  if (series === undefined) return [];
  return [
    {
      label: "capacity",
      colour: inks.value.grey,
      dash: [3, 4],
      width: 1,
      isGhost: false,
      isReference: true,
      x: series.t_s ?? [],
      y: (series.capacity_bps ?? []).map((value) => value * 1e-6),
    },
  ];
}

/** The mean over seeds and, with several seeds, the range from the smallest to the largest value. */
function over(all: Series[], metric: Metric): Pick<Line, "x" | "y"> & { low?: number[]; high?: number[] } {
  const columns = all.map((series) => series[metric.column] ?? []);
  if (columns.length < 2) {
    return { x: all[0]?.t_s ?? [], y: (columns[0] ?? []).map((value) => value * metric.factor) };
  }
  const [y, low, high]: number[][] = [[], [], []];
  // Samples of a flow begin at its start, which can differ between seeds. Rows are therefore matched by their time.
  const indexes = all.map((series) => new Map((series.t_s ?? []).map((t, i) => [key(t), i])));
  const times = new Map(
    all.flatMap((series) => (series.t_s ?? []).map((t): [number, number] => [key(t), t])),
  );
  const x = [...times.values()].sort((a, b) => a - b);
  for (const t of x) {
    const values = columns
      .map((column, seed) => column[indexes[seed]?.get(key(t)) ?? -1])
      .filter((value): value is number => value !== undefined && Number.isFinite(value))
      .map((value) => value * metric.factor);
    y?.push(values.reduce((sum, value) => sum + value, 0) / values.length);
    low?.push(Math.min(...values));
    high?.push(Math.max(...values));
  }
  return { x, y: y ?? [], low: low ?? [], high: high ?? [] };
}

/** Times as whole nanoseconds, so that equal times have equal keys. */
export function key(time: number): number {
  return Math.round(time * 1e9);
}

/** Columns on one time axis, as uPlot takes them: the times, and for each line one column or three (with a range). */
export function align(lines: Line[]): (number | null | undefined)[][] {
  const times = new Map<number, number>();
  for (const line of lines) for (const t of line.x) times.set(key(t), t);
  const x = [...times.values()].sort((a, b) => a - b);
  const place = new Map(x.map((t, i) => [key(t), i]));
  const column = (line: Line, values: number[]) => {
    // `undefined` is a time at which the line has no sample; `null` is a gap.
    const result: (number | null | undefined)[] = new Array(x.length).fill(undefined);
    line.x.forEach((t, i) => {
      const value = values[i];
      result[place.get(key(t)) as number] = value === undefined || !Number.isFinite(value) ? null : value;
    });
    return result;
  };
  const columns: (number | null | undefined)[][] = [x];
  for (const line of lines) {
    columns.push(column(line, line.y));
    if (line.low && line.high) columns.push(column(line, line.high), column(line, line.low));
  }
  return columns;
}

/** The value of a line at a time: that of the last sample until then. After its end, a line has no value. */
export function valueAt(line: Line, time: number): number | undefined {
  let [low, high] = [0, line.x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((line.x[middle] as number) <= time + 1e-9) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return undefined;
  const [last, before] = [line.x[low - 1] as number, line.x[low - 2] ?? 0];
  const hasEnded = low === line.x.length && time - last > 2 * (last - before);
  return hasEnded ? undefined : line.y[low - 1];
}

/** The largest value of the lines, for axes that several figures share. */
export function largest(lines: Line[]): number {
  let result = 0;
  for (const line of lines) {
    for (const value of line.high ?? line.y) if (Number.isFinite(value) && value > result) result = value;
  }
  return result;
}
