/** Playback: play, pause, step, the position in the run, and the speed. */

import { clock, count } from "../format";
import {
  duration,
  FULL_SPEED,
  isPlaying,
  pause,
  play,
  playhead,
  SPEEDS,
  seek,
  setSpeed,
  speed,
  step,
} from "../playback";
import { computed_s, run, tick } from "../state";

export function Playbar() {
  tick.value;
  const current = run.value;
  const total = current?.network.duration_s ?? 1;
  const done = computed_s.value / total;
  return (
    <fieldset class="playbar" aria-label="Playback">
      <button
        type="button"
        id="rewind"
        aria-label="Go to the start"
        title="Go to the start"
        onClick={() => seek(0)}
      >
        <Icon path="M5 4v12M16 4l-8 6 8 6z" />
      </button>
      <button type="button" aria-label="Step back" title="Step back (,)" onClick={() => step(-1)}>
        <Icon path="M12 4l-8 6 8 6zM15 4v12" />
      </button>
      {isPlaying.value && !(current?.complete && speed.value === FULL_SPEED) ? (
        <button type="button" id="pause" aria-label="Pause" title="Pause (space)" onClick={pause}>
          <Icon path="M6 4v12M13 4v12" />
        </button>
      ) : (
        <button type="button" id="play" aria-label="Play" title="Play (space)" onClick={play}>
          <Icon path="M5 4l11 6-11 6z" />
        </button>
      )}
      <button type="button" id="step" aria-label="Step" title="Step (.)" onClick={() => step(1)}>
        <Icon path="M5 4v12M8 4l8 6-8 6z" />
      </button>
      <input
        id="position"
        type="range"
        aria-label="Simulated time"
        aria-valuetext={clock(playhead.value, total)}
        min={0}
        max={total}
        step={total / 2000}
        value={playhead.value}
        style={{ "--done": `${(done * 100).toFixed(1)}%` }}
        onInput={(event) => seek(event.currentTarget.valueAsNumber)}
      />
      <output id="clock" for="position">
        {clock(playhead.value, total)}
      </output>
      <select
        id="speed"
        aria-label="Speed of playback, simulated time per second"
        value={String(speed.value)}
        onChange={(event) => setSpeed(Number(event.currentTarget.value))}
      >
        {SPEEDS.map(([value, label]) => (
          <option key={value} value={String(value)}>
            {label}
          </option>
        ))}
      </select>
      <span
        id="progress"
        class="note"
        role="status"
        data-complete={current?.complete ?? false}
        data-point={current?.point}
        data-run={current?.id}
      >
        {current === null
          ? ""
          : current.complete
            ? `${count(events())} simulated events`
            : `simulating: ${clock(computed_s.value, duration())}`}
      </span>
    </fieldset>
  );
}

function events(): number {
  return run.value?.seeds.reduce((sum, seed) => sum + seed.events, 0) ?? 0;
}

function Icon({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">
      <path d={path} fill="currentColor" stroke="currentColor" stroke-width="2" stroke-linejoin="round" />
    </svg>
  );
}

/** Keys for playback, unless the reader types in a field. */
export function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (target.closest("input, textarea, select, button, summary, a, [role=button]") !== null) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " ") isPlaying.value && !run.value?.complete ? pause() : toggle();
  else if (event.key === "." || event.key === "ArrowRight") step(1);
  else if (event.key === "," || event.key === "ArrowLeft") step(-1);
  else if (event.key === "Home") seek(0);
  else if (event.key === "End") seek(duration());
  else return;
  event.preventDefault();
}

function toggle(): void {
  if (isPlaying.value && speed.value !== FULL_SPEED) pause();
  else play();
}
