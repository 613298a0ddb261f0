/** The worker of `run`. It advances a simulation in slices, so that rows reach the page while the run goes on. */

import { isNode, load } from "./load.js";
import { describe, Simulation } from "./narrows_web.js";
import type { Answer, Request } from "./protocol.js";
import { buffersOf, newRows } from "./rows.js";

/** Tables that grow during a run. */
const GROWING = ["flows", "flow_samples", "link_samples", "events", "traces"];
const DEFAULT_TABLES = ["flows", "links", "flow_samples", "link_samples"];
/** Real time between two reports, in ms. */
const SLICE_MS = 25;
/** A run advances by at most this share of its duration at a time. */
const STEPS = 1000;

type Post = (answer: Answer, buffers: ArrayBuffer[]) => void;

async function simulate(request: Request, post: Post): Promise<void> {
  await load();
  const { scenario, point = 0, seed, watched, speed, tables = DEFAULT_TABLES } = request;
  check(request);
  const simulation = new Simulation(scenario, point, seed, watched);
  const began = performance.now();
  const taken: Record<string, number> = {};
  for (let isComplete = false; !isComplete; ) {
    const end = performance.now() + SLICE_MS;
    while (!isComplete && performance.now() < end) {
      const next = simulation.now + simulation.duration / STEPS;
      const latest = speed === undefined ? next : ((performance.now() - began) / 1000) * speed;
      if (latest <= simulation.now) break;
      isComplete = simulation.advance(Math.min(next, latest));
    }
    const { now, duration, events } = simulation;
    const rows = newRows(simulation, GROWING, taken);
    post({ type: "progress", progress: { now, duration, events, rows } }, buffersOf(Object.values(rows)));
    await new Promise((resolve) => setTimeout(resolve, speed === undefined ? 0 : SLICE_MS));
  }
  const found = Object.fromEntries(tables.map((name) => [name, simulation.rows(name, 0)]));
  const unknown = tables.find((name) => Object.keys(found[name] ?? {}).length === 0);
  if (unknown !== undefined)
    throw new Error(`tables: found ${unknown}, expected names of tables of the results`);
  const packets = watched === undefined ? null : simulation.packets();
  const outcome = { tables: found, packets, events: simulation.events };
  post({ type: "outcome", outcome }, buffersOf([...Object.values(found), ...(packets ? [packets] : [])]));
  simulation.free();
}

/** Throws if the scenario has no such point or link, or if the speed is wrong. `Simulation` checks the seed. */
function check({ scenario, point, watched, speed }: Request): void {
  const { network, points } = JSON.parse(describe(scenario, 0)) as {
    network: { links: unknown[] };
    points: unknown[];
  };
  expectWhole("point", point, Math.max(points.length, 1) - 1);
  expectWhole("watched", watched, network.links.length - 1);
  if (speed !== undefined && !(speed > 0))
    throw new Error(`speed: found ${speed}, expected a number above 0`);
}

function expectWhole(key: string, value: number | undefined, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= 0 && value <= most)) return;
  throw new Error(`${key}: found ${value}, expected a whole number from 0 to ${most}`);
}

function answer(request: Request, post: Post): void {
  simulate(request, post).catch((error: unknown) => {
    post({ type: "error", message: error instanceof Error ? error.message : String(error) }, []);
  });
}

if (isNode) {
  const { parentPort } = await import("node:worker_threads");
  parentPort?.on("message", (request: Request) =>
    answer(request, (reply, buffers) => parentPort.postMessage(reply, buffers)),
  );
} else {
  self.onmessage = (event: MessageEvent<Request>) =>
    answer(event.data, (reply, buffers) => self.postMessage(reply, { transfer: buffers }));
}
