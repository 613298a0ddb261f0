/** The simulator of Narrows: in the calling thread (`Simulation`), or in a worker (`run`). */

import init, { initSync } from "./narrows_web.js";
import type { Answer, Request } from "./worker.js";

export { add, catalogue, describe, remove, Simulation, set, version } from "./narrows_web.js";

/** Columns of equal length. The documentation of Narrows has their meanings and units (reference, results). */
export type Table = Record<string, Float64Array | string[]>;

/** The state of a run that goes on. */
export interface Progress {
  /** Simulated time in s. */
  now: number;
  /** Duration of the run in s. */
  duration: number;
  /** Number of simulated events so far. */
  events: number;
  /** The rows that are new since the last call, of the tables that grow during a run. */
  rows: Record<string, Table>;
}

export interface RunOptions {
  /** Number of a point of the scenario's sweep (default: 0, the first). */
  point?: number;
  /** Replaces the seed of the scenario. */
  seed?: number;
  /** Number of a link, as in `describe`. The outcome has the packets at the queue of this link. */
  watched?: number;
  /** Names of the tables in the outcome (default: flows, links, flow_samples, link_samples). */
  tables?: string[];
  /** Simulated seconds per second of real time (default: as fast as possible). */
  speed?: number;
  /** Is called about 40 times per second. */
  onProgress?: (progress: Progress) => void;
  /** Stops the run. The promise is then rejected with the reason of the signal. */
  signal?: AbortSignal;
}

export interface Outcome {
  tables: Record<string, Table>;
  /** The packets at the watched link: `t_s`, `through`, `flow`, `seq`, `bytes`, `marked`; `null` without such a link. */
  packets: Table | null;
  /** Number of simulated events. */
  events: number;
}

interface Thread {
  post(request: Request): void;
  stop(): void;
}

const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;
let loaded: Promise<unknown> | undefined;

/** Loads the module. Wait for it before any other call except `run`. Further calls do nothing. */
export async function load(): Promise<void> {
  loaded ??= isNode
    ? loadFile()
    : init({ module_or_path: new URL("./narrows_web_bg.wasm", import.meta.url) });
  await loaded;
}

async function loadFile(): Promise<void> {
  const { readFile } = await import("node:fs/promises");
  initSync({ module: await readFile(new URL("./narrows_web_bg.wasm", import.meta.url)) });
}

/**
 * Simulates a scenario in a worker.
 *
 * @param scenario The text of a scenario file (TOML).
 * @throws Error with the line that the command line prints, if the scenario has an error.
 */
export async function run(scenario: string, options: RunOptions = {}): Promise<Outcome> {
  const { onProgress, signal, ...given } = options;
  signal?.throwIfAborted();
  let stop = () => {};
  try {
    return await new Promise<Outcome>((resolve, reject) => {
      const take = (answer: Answer) => {
        if (answer.type === "progress") onProgress?.(answer.progress);
        else if (answer.type === "outcome") resolve(answer.outcome);
        else reject(new Error(answer.message));
      };
      const abort = () => reject(signal?.reason);
      signal?.addEventListener("abort", abort);
      start(take, reject).then((thread) => {
        stop = () => {
          signal?.removeEventListener("abort", abort);
          thread.stop();
        };
        if (signal?.aborted) stop();
        else thread.post({ scenario, ...given });
      }, reject);
    });
  } finally {
    stop();
  }
}

/** Starts a worker: a thread of Node.js, or a module worker of a browser. */
async function start(take: (answer: Answer) => void, fail: (error: unknown) => void): Promise<Thread> {
  if (isNode) {
    const { Worker: NodeWorker } = await import("node:worker_threads");
    // Options of the program, e.g. --input-type, can be invalid for a file.
    const worker = new NodeWorker(new URL("./worker.js", import.meta.url), { execArgv: [] });
    worker.on("message", take).on("error", fail);
    return { post: (request) => worker.postMessage(request), stop: () => void worker.terminate() };
  }
  // Bundlers look for this expression.
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  worker.onmessage = (event: MessageEvent<Answer>) => take(event.data);
  worker.onerror = (event) => fail(new Error(event.message || "the worker did not start"));
  return { post: (request) => worker.postMessage(request), stop: () => worker.terminate() };
}
