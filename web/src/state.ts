/**
 * The state of the page. The text of the scenario is the only source of truth: controls change the text through the
 * engine, and everything that the page shows follows from the text.
 */

import { computed, signal } from "@preact/signals";
import { RunData } from "./data";
import { type Engine, ScenarioError } from "./engine";
import { drawSoon } from "./pace";
import { onNewRun } from "./playback";
import type { Catalogue, Description, Network } from "./protocol";
import { toFragment } from "./url";

export type Compare = "ghost" | "side" | "none";

export const text = signal("");
/** The error that the command line prints for the present text, or an empty string. */
export const problem = signal("");
/** A message about the address of the page, or an empty string. */
export const notice = signal("");
/** The description of the last text without errors. */
export const described = signal<Description | null>(null);
export const catalogue = signal<Catalogue>({ congestion: [], rate: [] });
export const version = signal("");
export const run = signal<RunData | null>(null);
/** Changes whenever the present run has new rows. */
export const tick = signal(0);
/** The simulated time up to which the page has drawn the results, in s. */
export const computed_s = signal(0);
/** The complete run before the present one. */
export const previous = signal<RunData | null>(null);
/** A run that stays for comparison until it is released. */
export const pinned = signal<RunData | null>(null);
export const compare = signal<Compare>("ghost");
/** The run that the present run is compared with. */
export const other = computed(() => (compare.value === "none" ? null : (pinned.value ?? previous.value)));
/** Name of the link whose queue is shown, if the reader has selected one. */
export const chosenLink = signal<string | null>(null);
/** Number of the point of the sweep that is shown. */
export const point = signal(0);

/** Maximum number of seeds that the page runs; `narrows run` has no such limit. */
export const MOST_SEEDS = 20;

let engine: Engine | null = null;
let runs = 0;
let describing = 0;
let lastKey = "";
let lastEdit = 0;
let typed: ReturnType<typeof setTimeout> | undefined;

export async function connect(started: Engine): Promise<void> {
  engine = started;
  started.onProgress = (progress) => {
    const current = run.value;
    if (current?.id === progress.run) {
      current.take(progress);
      drawSoon(() => {
        computed_s.value = run.value?.first.now ?? 0;
        tick.value += 1;
      });
    } else if (background?.data.id === progress.run) {
      background.data.take(progress);
      if (background.data.complete) endBackground(background.data);
    }
  };
  started.onRunError = (id, message) => {
    if (run.value?.id === id) problem.value = message;
    else if (background?.data.id === id) endBackground(new ScenarioError(message));
  };
  catalogue.value = await started.catalogue();
  version.value = await started.call("version");
}

export function pauseEngine(paused: boolean): void {
  engine?.pause(paused);
}

/** Replaces the text and runs it. With `delay`, the run waits until the author stops typing. */
export function write(changed: string, delay = 0): void {
  text.value = changed;
  notice.value = "";
  clearTimeout(typed);
  if (delay === 0) void check();
  else typed = setTimeout(() => void check(), delay);
}

/** Opens another scenario. Choices about the old one are dropped. */
export function open(toml: string): void {
  chosenLink.value = null;
  previous.value = null;
  run.value = null;
  point.value = 0;
  lastKey = "";
  write(toml);
}

/** Describes and runs the present text again, e.g. another point of its sweep. */
export function recheck(): void {
  clearTimeout(typed);
  void check();
}

/** Describes the present text, and starts its run. */
async function check(): Promise<void> {
  if (engine === null) return;
  const toml = text.value;
  const turn = ++describing;
  try {
    const description = await engine.describe(toml, point.value);
    if (turn !== describing) return;
    problem.value = "";
    described.value = description;
    point.value = Math.min(point.value, description.points.length - 1);
    start(toml, description);
  } catch (error) {
    if (turn !== describing) return;
    problem.value = line(error);
  }
  await remember(toml);
}

function start(toml: string, description: Description): void {
  endBackground(null);
  const old = run.value;
  old?.releasePackets();
  if (old?.complete) previous.value = old;
  if (previous.value !== null && !isComparable(previous.value.network, description.network))
    previous.value = null;
  const data = newRun(toml, description, point.value);
  run.value = data;
  computed_s.value = 0;
  onNewRun();
  tick.value += 1;
  engine?.pause(false);
  request(data, description, data.watched);
}

function newRun(toml: string, description: Description, at: number): RunData {
  const { network, seeds } = description;
  const shown = Math.min(seeds.length, MOST_SEEDS);
  return new RunData(++runs, toml, network, watchedLink(network), shown, at, at * seeds.length);
}

function request(data: RunData, { seeds }: Description, watched: number | null): void {
  const { id, toml, point } = data;
  engine?.run({ run: id, toml, point, seeds: seeds.slice(0, MOST_SEEDS), watched });
}

/** A run that the page does not show, and the function that gets its outcome. */
let background: { data: RunData; end(outcome: RunData | Error | null): void } | null = null;

function endBackground(outcome: RunData | Error | null): void {
  background?.end(outcome);
  background = null;
}

/** Simulates a point without its packets. The result is `null` if the page starts another run first. */
export async function runInBackground(toml: string, at: number): Promise<RunData | null> {
  if (engine === null) return null;
  const current = run.value;
  const description = await engine.describe(toml, at);
  if (run.value !== current) return null;
  const data = newRun(toml, description, at);
  return new Promise((resolve, reject) => {
    background = {
      data,
      end: (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)),
    };
    request(data, description, null);
  });
}

/** Whether one of the networks has all nodes of the other, e.g. after a change of the flows. */
function isComparable(a: Network, b: Network): boolean {
  const [small, large] = a.nodes.length < b.nodes.length ? [a, b] : [b, a];
  return small.nodes.every((node) => large.nodes.includes(node));
}

/** Runs the present scenario again, e.g. after the choice of another link. */
export function restart(): void {
  if (described.value !== null && problem.value === "") start(text.value, described.value);
}

/** Number of the link whose queue and packets are shown. */
export function watchedLink(network: Network): number | null {
  const chosen = network.links.findIndex((link) => link.name === chosenLink.value);
  return chosen >= 0 ? chosen : bottleneck(network);
}

/** Of the slowest links, the link that the data of the most flows crosses. */
export function bottleneck(network: Network): number | null {
  const users = new Map<number, number>();
  for (const flow of network.flows) {
    for (const link of flow.path) users.set(link, (users.get(link) ?? 0) + flow.count);
  }
  let best: number | null = null;
  let bestScore: [number, number] = [Number.POSITIVE_INFINITY, 0];
  for (const [link, count] of users) {
    const rate = network.links[link]?.rates_bps[0]?.[1] ?? Number.POSITIVE_INFINITY;
    if (rate < bestScore[0] || (rate === bestScore[0] && count > bestScore[1])) {
      [best, bestScore] = [link, [rate, count]];
    }
  }
  return best;
}

type Edit = { key: string; apply(engine: Engine, toml: string): Promise<string> };
const edits: Edit[] = [];
let isEditing = false;

/** Sets a key; an empty value removes it. Later values of a key replace earlier ones that still wait. */
export function set(key: string, value: string): void {
  edit({ key, apply: (engine, toml) => engine.call("set", toml, key, value) });
}

export function add(list: string, body: string): void {
  edit({ key: `${list}+`, apply: (engine, toml) => engine.call("add", toml, list, body) });
}

export function remove(list: string, index: number): void {
  edit({ key: `${list}-`, apply: (engine, toml) => engine.call("remove", toml, list, index) });
}

function edit(change: Edit): void {
  const waiting = edits.findIndex((other) => other.key === change.key && !/[+-]$/.test(change.key));
  if (waiting >= 0) edits[waiting] = change;
  else edits.push(change);
  void applyEdits();
}

async function applyEdits(): Promise<void> {
  if (isEditing || engine === null) return;
  isEditing = true;
  for (let change = edits.shift(); change !== undefined; change = edits.shift()) {
    const now = performance.now();
    const continues = change.key === lastKey && now - lastEdit < 1500;
    [lastKey, lastEdit] = [change.key, now];
    try {
      const kept = previous.value;
      text.value = await change.apply(engine, text.value);
      await check();
      // While a slider moves, the comparison stays with the run before the move.
      if (continues && kept !== null) previous.value = kept;
    } catch (error) {
      problem.value = line(error);
    }
  }
  isEditing = false;
}

/** Puts the scenario into the address, without a new entry in the browser's history. */
async function remember(toml: string): Promise<void> {
  try {
    const fragment = await toFragment(toml);
    if (toml === text.value) history.replaceState(null, "", fragment);
  } catch {
    // The text is too long for an address. The address then keeps an earlier text.
  }
}

function line(error: unknown): string {
  if (error instanceof ScenarioError) return error.message;
  return `The page failed: ${error instanceof Error ? error.message : String(error)}`;
}

/** Keeps the present run for comparison, or releases the kept one. */
export function togglePin(): void {
  pinned.value = pinned.value === null ? run.value : null;
  if (pinned.value !== null && compare.value === "none") compare.value = "ghost";
}

/** Opens the run that is kept for comparison, and keeps the present run instead. */
export function swap(): void {
  const [kept, current] = [other.value, run.value];
  if (kept === null || current === null) return;
  pinned.value = current;
  point.value = kept.point;
  write(kept.toml);
}
