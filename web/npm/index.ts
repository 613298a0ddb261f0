/** The simulator of Narrows: in the calling thread (`Simulation`), or in a worker (`run`). */

import { isNode } from "./load.js";
import type { Answer, Request } from "./protocol.js";
import type { Columns } from "./rows.js";

export { load } from "./load.js";
export { add, catalogue, describe, remove, Simulation, set, version } from "./narrows_web.js";

/** Columns of equal length. The documentation of Narrows has their meanings and units (reference, results). */
export type Table = Columns;

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
  point?: number | undefined;
  /** Replaces the seed of the scenario. */
  seed?: number | undefined;
  /** Number of a link, as in `describe`. The outcome has the packets at the queue of this link. */
  watched?: number | undefined;
  /** Names of the tables in the outcome (default: flows, links, flow_samples, link_samples). */
  tables?: readonly string[] | undefined;
  /** Simulated seconds per second of real time, above 0 (default: as fast as possible). */
  speed?: number | undefined;
  /** Is called about 40 times per second, and at the end. If it throws, the run stops, and `run` is rejected. */
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Stops the run. The promise is then rejected with the reason of the signal. */
  signal?: AbortSignal | undefined;
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

/**
 * Simulates a scenario in a worker.
 *
 * A run is one point of the scenario's sweep, with one seed.
 *
 * @param scenario The text of a scenario file (TOML).
 * @throws Error with the line that the command line prints, if the scenario has an error. In this line, the file's name
 *   is `scenario.toml`.
 */
export async function run(scenario: string, options: RunOptions = {}): Promise<Outcome> {
  const { onProgress, signal, point, seed, watched, tables, speed } = options;
  signal?.throwIfAborted();
  const request: Request = {
    scenario: String(scenario),
    point,
    seed,
    watched,
    tables: tables && [...tables],
    speed,
  };
  let stop = () => {};
  try {
    return await new Promise<Outcome>((resolve, reject) => {
      const take = (answer: Answer) => {
        try {
          if (answer.type === "progress") onProgress?.(answer.progress);
          else if (answer.type === "outcome") resolve(answer.outcome);
          else reject(new Error(answer.message));
        } catch (error) {
          reject(error);
        }
      };
      const abort = () => reject(signal?.reason);
      signal?.addEventListener("abort", abort);
      start(take, reject)
        .then((thread) => {
          stop = () => {
            signal?.removeEventListener("abort", abort);
            thread.stop();
          };
          if (signal?.aborted) stop();
          else thread.post(request);
        })
        .catch(reject);
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
