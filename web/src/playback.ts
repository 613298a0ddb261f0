/**
 * Playback of a run. The engine computes as fast as it can; the playhead is the simulated time that the page shows.
 * At full speed, the playhead follows the engine.
 */

import { signal } from "@preact/signals";
import { computed_s, pauseEngine, run } from "./state";

export const FULL_SPEED = Number.POSITIVE_INFINITY;
/** Simulated seconds per second. */
export const SPEEDS: [number, string][] = [
  [FULL_SPEED, "as fast as possible"],
  [10, "10 s per second"],
  [1, "1 s per second (real time)"],
  [0.1, "100 ms per second"],
  [0.01, "10 ms per second (packets)"],
  [0.001, "1 ms per second (packets)"],
  [0.0001, "100 us per second (packets)"],
];

export const speed = signal(FULL_SPEED);
export const isPlaying = signal(true);
export const playhead = signal(0);
/** Whether the page chose the speed. The next run is then shown at full speed again. */
let isReplay = false;

let last = 0;

export function duration(): number {
  return run.value?.network.duration_s ?? 1;
}

export function onNewRun(): void {
  if (isReplay) speed.value = FULL_SPEED;
  isReplay = false;
  playhead.value = 0;
  isPlaying.value = true;
}

/** Minimum real time of a replay, in s. */
const REPLAY_S = 4;

export function play(): void {
  // At full speed, a complete run has no more to show. It is replayed at a speed that a reader can follow.
  if (speed.value === FULL_SPEED && run.value?.complete) {
    const [slower] = SPEEDS.find(([value]) => duration() / value >= REPLAY_S) ?? [1];
    speed.value = slower;
    isReplay = true;
  }
  // At the end, playback begins again.
  if (playhead.value >= duration() && speed.value !== FULL_SPEED) playhead.value = 0;
  isPlaying.value = true;
  pauseEngine(false);
}

export function pause(): void {
  isPlaying.value = false;
  if (speed.value === FULL_SPEED) pauseEngine(true);
}

export function seek(time: number): void {
  isPlaying.value = false;
  pauseEngine(false);
  playhead.value = Math.max(0, Math.min(time, duration()));
}

/** Moves by one sample, or by one packet in slow motion. */
export function step(direction: 1 | -1): void {
  const current = run.value;
  if (current === null) return;
  const packet = current.packets.packetTime(playhead.value);
  const interval = current.network.interval_s || current.network.duration_s / 200;
  const length = speed.value < 0.1 && Number.isFinite(packet) ? packet : interval;
  seek(playhead.value + direction * length);
}

/** Sets the speed. After slow motion from a button, the next run is shown at full speed. */
export function setSpeed(value: number, replay = false): void {
  speed.value = value;
  isReplay = replay;
  // Slow motion at the end of a complete run begins in its middle, where packets flow.
  if (value < FULL_SPEED && playhead.value >= duration()) playhead.value = value < 1 ? duration() / 2 : 0;
  if (value === FULL_SPEED) {
    isPlaying.value = true;
    pauseEngine(false);
  } else play();
}

function frame(now: number): void {
  const elapsed = Math.min((now - last) / 1000, 0.1);
  last = now;
  if (isPlaying.value) {
    const limit = computed_s.value;
    if (speed.value === FULL_SPEED) playhead.value = limit;
    else playhead.value = Math.min(playhead.value + elapsed * speed.value, Math.max(limit, playhead.value));
    if (playhead.value >= duration() && run.value?.complete && speed.value !== FULL_SPEED)
      isPlaying.value = false;
  }
  requestAnimationFrame(frame);
}

export function startClock(): void {
  last = performance.now();
  requestAnimationFrame(frame);
}
