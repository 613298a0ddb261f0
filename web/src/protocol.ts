/** The messages between the page and its worker, and the JSON that the engine returns. */

/** Columns of a table. Text columns are arrays of strings. */
export type Columns = Record<string, Float64Array | string[]>;

export interface LinkInfo {
  name: string;
  from: number;
  to: number;
  /** Steps of the rate: time in s, rate in bit/s. */
  rates_bps: [number, number][];
  delay_s: number;
  queue: unknown;
}

export interface FlowInfo {
  name: string;
  cc: string;
  /** Index of the entry of `[[flows]]` from which the flow comes. */
  entry: number;
  from: number;
  to: number;
  start_s: number;
  count: number;
  /** Numbers of the links that the data crosses. */
  path: number[];
}

export interface Network {
  duration_s: number;
  warmup_s: number;
  interval_s: number;
  nodes: string[];
  links: LinkInfo[];
  flows: FlowInfo[];
  controlled: { link: number; kind: string }[];
  sampled: number[] | null;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Description {
  /** All keys with their defaults. */
  scenario: { [key: string]: Json };
  /** The keys that the text sets. */
  set: { [key: string]: Json };
  renamed: [string, string][];
  /** The network of the chosen point. */
  network: Network;
  /** The values of the sweep's factors at each point. A scenario without a sweep has one point without factors. */
  points: Record<string, Json>[];
  /** The seeds of the chosen point. */
  seeds: number[];
}

export interface Parameter {
  name: string;
  kind: "flag" | "word" | "text" | "contents" | "whole" | "number" | "time" | "rate";
  min: number | null;
  max: number | null;
  words: string[];
  unit: string | null;
  default: Json;
  default_text: string;
  expected: string;
  meaning: string;
}

export interface Controller {
  name: string;
  summary: string;
  family?: string;
  parameters: Parameter[];
  presets?: { name: string; summary: string }[];
}

export interface Catalogue {
  congestion: Controller[];
  rate: Controller[];
}

/** The functions of the engine that the page calls. */
export interface EngineCalls {
  describe: [toml: string, point: number];
  set: [toml: string, key: string, value: string];
  add: [toml: string, list: string, body: string];
  remove: [toml: string, list: string, index: number];
  catalogue: [];
  version: [];
}

export type CallName = keyof EngineCalls;

/** A run of one point of a sweep, with several seeds. */
export interface RunRequest {
  run: number;
  toml: string;
  point: number;
  seeds: number[];
  /** Number of the link whose packets are shown. */
  watched: number | null;
}

/** From the page to the worker. */
export type Request =
  | { type: "load"; module: Uint8Array }
  | { type: "call"; id: number; name: CallName; args: (string | number)[] }
  | ({ type: "run" } & RunRequest)
  | { type: "pause"; paused: boolean };

/** Rows of tables that are new since the last message of the run. `seed` is the index of the seed. */
export interface Progress {
  type: "progress";
  run: number;
  seed: number;
  now: number;
  events: number;
  complete: boolean;
  tables: Record<string, Columns>;
  /** Numbers, names and sources of the flows that have started since the last message. */
  started: Columns;
  packets: Columns | null;
  /** Whether later packets are not recorded, because there are too many. */
  packetsAreCut: boolean;
}

/** From the worker to the page. */
export type Reply =
  | { type: "ready" }
  | { type: "failed"; message: string }
  | { type: "result"; id: number; value: string }
  | { type: "error"; id: number; message: string }
  | { type: "run-error"; run: number; message: string }
  | Progress;
