/**
 * The worker: owns the WebAssembly module, answers calls about the text of a scenario, and advances runs.
 *
 * A run advances in slices of a few milliseconds. Between two slices the worker handles messages, so that an edit
 * replaces a run at once.
 */

import { buffersOf, newRows } from "../npm/rows";
import { decodeLzma } from "./lzma";
import type { CallName, Columns, Progress, Reply, Request, RunRequest } from "./protocol";

interface Simulation {
  readonly now: number;
  readonly duration: number;
  readonly events: number;
  advance(until: number): boolean;
  rows(table: string, from: number): Columns;
  live_flows(from: number): Columns;
  packets(): Columns;
  free(): void;
}

type EditFunctions = Record<CallName, (...args: (string | number)[]) => string>;

/** Declared by wasm-bindgen's glue (target `no-modules`), which the build puts in front of this file. */
declare const wasm_bindgen: ((init: { module_or_path: ArrayBuffer }) => Promise<unknown>) &
  EditFunctions & {
    Simulation: new (toml: string, point: number, seed: number, watched?: number) => Simulation;
  };

declare const self: {
  postMessage(message: Reply, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
};

/** Tables that grow during a run. */
const LIVE = ["flow_samples", "link_samples", "traces"];
/** Tables that are complete at the end of a run. */
const FINAL = ["flows", "links"];
/** Real time of a slice in ms: short enough for edits, long enough for the cost of a message. */
const SLICE_MS = 25;
/** The engine advances by at most this part of the run at a time, so that the first figures appear early. */
const STEPS = 200;
/** The first step of a run in simulated s. Later steps are longer or shorter, so that each takes a part of a slice. */
const FIRST_STEP_S = 0.001;
/** Packets are recorded up to this number of rows; more would take too much memory. */
const MOST_PACKET_ROWS = 1_500_000;
/** A run ends at this number of samples, because drawing more takes too long. */
const MOST_SAMPLES = 500_000;

interface Active {
  run: number;
  seed: number;
  simulation: Simulation;
  taken: Record<string, number>;
  samples: number;
  /** Flows with lower numbers are known to the page. */
  knownFlows: number;
  packetRows: number;
  isWatched: boolean;
  /** Simulated time of the next step, in s. */
  step: number;
}

let active: Active | null = null;
let waiting: (RunRequest & { next: number }) | null = null;
let isPaused = false;
let isScheduled = false;

self.onmessage = (event) => {
  const request = event.data;
  switch (request.type) {
    case "load":
      load(request.module).then(
        () => self.postMessage({ type: "ready" }),
        (error: unknown) => self.postMessage({ type: "failed", message: text(error) }),
      );
      break;
    case "call":
      try {
        const value = wasm_bindgen[request.name](...request.args);
        self.postMessage({ type: "result", id: request.id, value });
      } catch (error) {
        self.postMessage({ type: "error", id: request.id, message: text(error) });
      }
      break;
    case "run":
      stop();
      waiting = { ...request, next: 0 };
      schedule();
      break;
    case "pause":
      isPaused = request.paused;
      schedule();
      break;
  }
};

async function load(module: Uint8Array): Promise<void> {
  await wasm_bindgen({ module_or_path: decodeLzma(module).buffer });
}

/** Continues the run after the messages that are already waiting. */
function schedule(): void {
  if (isScheduled || isPaused || (active === null && waiting === null)) return;
  isScheduled = true;
  setTimeout(() => {
    isScheduled = false;
    slice();
    schedule();
  }, 0);
}

function slice(): void {
  if (isPaused) return;
  if (active === null && !begin()) return;
  const current = active;
  if (current === null) return;
  const { simulation } = current;
  const end = performance.now() + SLICE_MS;
  let complete = false;
  for (let now = performance.now(); !complete && now < end; ) {
    complete = simulation.advance(simulation.now + current.step);
    const took = performance.now() - now;
    now += took;
    // A step can cost much more than the one before it, e.g. after slow start. Such a step must not delay messages for
    // long.
    const factor = Math.max(0.1, Math.min(2, SLICE_MS / 4 / Math.max(took, 0.1)));
    current.step = Math.min(current.step * factor, simulation.duration / STEPS);
  }
  send(current, complete);
  if (!complete && current.samples > MOST_SAMPLES) {
    const message =
      `The run ended at ${Number(simulation.now.toPrecision(3))} s, because it has more than ` +
      `${MOST_SAMPLES.toLocaleString("en")} samples. Set a larger probes.interval.`;
    self.postMessage({ type: "run-error", run: current.run, message });
    stop();
  } else if (complete) {
    simulation.free();
    active = null;
  }
}

/** Starts the next seed of the waiting run. */
function begin(): boolean {
  if (waiting === null) return false;
  const { run, toml, point, seeds, next, watched } = waiting;
  const seed = seeds[next];
  if (seed === undefined) {
    waiting = null;
    return false;
  }
  waiting.next += 1;
  // Only the packets of the first seed are shown.
  const link = next === 0 && watched !== null ? watched : undefined;
  try {
    const simulation = new wasm_bindgen.Simulation(toml, point, seed, link);
    const step = Math.min(FIRST_STEP_S, simulation.duration / STEPS);
    const isWatched = link !== undefined;
    active = {
      run,
      seed: next,
      simulation,
      taken: {},
      samples: 0,
      knownFlows: 0,
      packetRows: 0,
      isWatched,
      step,
    };
    return true;
  } catch (error) {
    waiting = null;
    self.postMessage({ type: "run-error", run, message: text(error) });
    return false;
  }
}

function stop(): void {
  active?.simulation.free();
  active = null;
  waiting = null;
}

function send(current: Active, complete: boolean): void {
  const tables = newRows(current.simulation, complete ? [...LIVE, ...FINAL] : LIVE, current.taken);
  for (const columns of Object.values(tables)) current.samples += Object.values(columns)[0]?.length ?? 0;
  const started = current.simulation.live_flows(current.knownFlows);
  for (const number of (started.flow ?? []) as Float64Array) {
    current.knownFlows = Math.max(current.knownFlows, number + 1);
  }
  let packets: Columns | null = null;
  if (current.isWatched) {
    const columns = current.simulation.packets();
    const rows = columns.t_s?.length ?? 0;
    // Packets beyond the limit are taken from the engine as well, but they are not kept.
    if (rows > 0 && current.packetRows < MOST_PACKET_ROWS) packets = columns;
    current.packetRows += rows;
  }
  const { simulation } = current;
  const message: Progress = {
    type: "progress",
    run: current.run,
    seed: current.seed,
    now: simulation.now,
    events: simulation.events,
    complete,
    tables,
    started,
    packets,
    packetsAreCut: current.packetRows >= MOST_PACKET_ROWS,
  };
  const buffers = buffersOf([...Object.values(tables), started, ...(packets ? [packets] : [])]);
  self.postMessage(message, buffers);
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
