/** The rows of a run as series by flow, link and traced variable. */

import { PacketLog } from "./packets";
import type { Columns, Network, Progress } from "./protocol";

/** Parallel columns of numbers that grow during a run. */
export type Series = Record<string, number[]>;

/** The number of a flow in a run, its name, and the name of the entry that has started it. */
export interface FlowName {
  flow: number;
  name: string;
  source: string;
}

export interface FlowRow extends FlowName {
  goodput_bps: number;
  start_s: number;
  end_s: number;
  rtt_mean_s: number;
  rtt_p95_s: number;
  sent_packets: number;
  retransmits: number;
  timeouts: number;
  fct_s: number;
}

export interface LinkRow {
  name: string;
  link: number;
  utilisation: number;
  dropped_packets: number;
  random_losses: number;
  marks: number;
  sojourn_mean_s: number;
}

/** One seed of a run. */
export class SeedData {
  flows = new Map<number, Series>();
  links = new Map<number, Series>();
  /** By entity, then by variable. */
  traces = new Map<string, Map<string, Series>>();
  /** Rows of the results by the number of the flow or link. The engine sends them at the end of the seed's run. */
  flowRows = new Map<number, FlowRow>();
  linkRows = new Map<number, LinkRow>();
  /** The flows that have started, by number. */
  names = new Map<number, FlowName>();
  /** The numbers of these flows, by name. */
  numbers = new Map<string, number>();
  now = 0;
  events = 0;
  complete = false;

  know(flow: FlowName): void {
    this.names.set(flow.flow, flow);
    this.numbers.set(flow.name, flow.flow);
  }
}

/** A run of a scenario with all its seeds. */
export class RunData {
  readonly seeds: SeedData[];
  packets = new PacketLog();
  packetsAreCut = false;

  constructor(
    readonly id: number,
    readonly toml: string,
    readonly network: Network,
    readonly watched: number | null,
    seedCount: number,
    /** Number of the point of the sweep. */
    readonly point = 0,
    /** Number of the first seed's run in the whole sweep. */
    readonly firstRun = 0,
  ) {
    this.seeds = Array.from({ length: seedCount }, () => new SeedData());
    const link = watched === null ? undefined : network.links[watched];
    if (link !== undefined) this.packets.configure(link.delay_s, (time) => rateAt(link.rates_bps, time));
  }

  /** Frees the packets. Only the present run shows packets; the other runs are shown as lines. */
  releasePackets(): void {
    this.packets = new PacketLog();
  }

  get first(): SeedData {
    return this.seeds[0] as SeedData;
  }

  get complete(): boolean {
    return this.seeds.every((seed) => seed.complete);
  }

  /** Adds the rows of a message. */
  take(progress: Progress): void {
    const seed = this.seeds[progress.seed];
    if (seed === undefined) return;
    const { tables } = progress;
    if (tables.flow_samples) split(tables.flow_samples, "flow", seed.flows);
    if (tables.link_samples) split(tables.link_samples, "link", seed.links);
    if (tables.traces) takeTraces(tables.traces, seed.traces);
    for (const flow of rows<FlowName>(progress.started)) seed.know(flow);
    for (const row of rows<FlowRow>(tables.flows)) {
      seed.flowRows.set(row.flow, row);
      seed.know(row);
    }
    for (const row of rows<LinkRow>(tables.links)) {
      // A packet counts when its transmission begins, so utilisation can exceed 1. `narrows run` limits it to 1, too.
      row.utilisation = Math.min(row.utilisation, 1);
      seed.linkRows.set(row.link, row);
    }
    if (progress.packets) this.packets.take(progress.packets);
    if (progress.seed === 0) this.packetsAreCut = progress.packetsAreCut;
    seed.now = progress.now;
    seed.events = progress.events;
    seed.complete = progress.complete;
  }

  /** The numbers of flows in the order of the entries of the scenario. */
  sorted(flows: Iterable<number>): number[] {
    return [...flows].sort((a, b) => this.groupOf(a) - this.groupOf(b) || a - b);
  }

  /** The entry of `network.flows` that has started a flow of the first seed. */
  groupOf(flow: number): number {
    const source = this.first.names.get(flow)?.source;
    const index = this.network.flows.findIndex((info) => info.name === source);
    return index >= 0 ? index : (startOrder(this.network)[flow] ?? 0);
  }

  /** The samples that a seed has of a flow. `flow` is the flow's number in the first seed. */
  seriesIn(seed: SeedData, flow: number): Series | undefined {
    const number = this.numberIn(seed, flow);
    return number === undefined ? undefined : seed.flows.get(number);
  }

  /** The results that a seed has of a flow. `flow` is the flow's number in the first seed. */
  rowIn(seed: SeedData, flow: number): FlowRow | undefined {
    const number = this.numberIn(seed, flow);
    return number === undefined ? undefined : seed.flowRows.get(number);
  }

  /**
   * The number that a flow has in a seed, or `undefined` if the seed does not (yet) have this flow. `flow` is the
   * flow's number in the first seed.
   *
   * The simulator numbers flows in the order of their starts. If starts are random, the same flow has another number in
   * another seed.
   */
  private numberIn(seed: SeedData, flow: number): number | undefined {
    if (seed === this.first) return flow;
    const name = this.first.names.get(flow)?.name;
    return name === undefined ? undefined : seed.numbers.get(name);
  }
}

const orders = new WeakMap<Network, number[]>();

/** For each flow in the order of starts, the index of its entry in `network.flows`. */
export function startOrder(network: Network): number[] {
  let order = orders.get(network);
  if (order === undefined) {
    order = network.flows
      .flatMap((flow, index) => Array.from({ length: Math.min(flow.count, 1000) }, () => ({ flow, index })))
      .sort((a, b) => a.flow.start_s - b.flow.start_s)
      .map(({ index }) => index);
    orders.set(network, order);
  }
  return order;
}

export function rateAt(steps: [number, number][], time: number): number {
  let rate = steps[0]?.[1] ?? Number.NaN;
  for (const [at, value] of steps) {
    if (at > time) break;
    rate = value;
  }
  return rate;
}

function split(columns: Columns, key: string, into: Map<number, Series>): void {
  const ids = columns[key] as Float64Array;
  const numeric = Object.entries(columns).filter(
    (entry): entry is [string, Float64Array] => entry[0] !== key && entry[1] instanceof Float64Array,
  );
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i] as number;
    let series = into.get(id);
    if (series === undefined) {
      series = Object.fromEntries(numeric.map(([name]) => [name, []]));
      into.set(id, series);
    }
    for (const [name, values] of numeric) series[name]?.push(values[i] as number);
  }
}

function takeTraces(columns: Columns, into: Map<string, Map<string, Series>>): void {
  const { t_s, entity, key, value } = columns as {
    t_s: Float64Array;
    entity: string[];
    key: string[];
    value: Float64Array;
  };
  for (let i = 0; i < t_s.length; i++) {
    const variables = entry(into, entity[i] as string, () => new Map<string, Series>());
    const series = entry(variables, key[i] as string, () => ({ t_s: [], value: [] }) as Series);
    series.t_s?.push(t_s[i] as number);
    series.value?.push(value[i] as number);
  }
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function rows<Row>(columns: Columns | undefined): Row[] {
  if (columns === undefined) return [];
  const names = Object.keys(columns);
  const length = columns[names[0] ?? ""]?.length ?? 0;
  return Array.from({ length }, (_, i) =>
    Object.fromEntries(names.map((name) => [name, columns[name]?.[i]])),
  ) as Row[];
}

/** The times of the samples at which a counter is higher than in the sample before. */
export function rises(series: Series | undefined, column: string): number[] {
  const values = series?.[column] ?? [];
  return (series?.t_s ?? []).filter((_, i) => (values[i] ?? 0) > (i === 0 ? 0 : (values[i - 1] ?? 0)));
}
