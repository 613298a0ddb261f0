/** The points of a sweep: the choice of one, and a table of all. */

import { figure } from "../format";
import { linkResults, resultRows } from "../results";
import { described, point, run, tick } from "../state";
import {
  choosePoint,
  isRunningAll,
  isSweep,
  MOST_POINTS,
  pointLabel,
  pointRuns,
  points,
  runAll,
} from "../sweep";

export function SweepBar() {
  tick.value;
  if (!isSweep.value) return null;
  const [count, total] = [points.value.length, described.value?.points.length ?? 0];
  return (
    <fieldset class="compare sweep" aria-label="Sweep">
      <label for="point">Point of the sweep</label>
      <button
        type="button"
        id="previous-point"
        aria-label="Previous point"
        disabled={point.value === 0}
        onClick={() => choosePoint(point.value - 1)}
      >
        ‹
      </button>
      <select
        id="point"
        value={String(point.value)}
        onChange={(event) => choosePoint(Number(event.currentTarget.value))}
      >
        {points.value.map((factors, i) => (
          <option key={i} value={String(i)}>
            {i + 1} of {total}: {pointLabel(factors)}
          </option>
        ))}
      </select>
      <button
        type="button"
        id="next-point"
        aria-label="Next point"
        disabled={point.value === count - 1}
        onClick={() => choosePoint(point.value + 1)}
      >
        ›
      </button>
      <button
        type="button"
        id="run-all"
        title="Draw all points as faint lines, and list their results"
        disabled={isRunningAll.value || !run.value?.complete || pointRuns.value.length === count}
        onClick={() => void runAll()}
      >
        {isRunningAll.value
          ? `Running point ${pointRuns.value.length + 1} of ${count}`
          : `Run all ${count} points`}
      </button>
      <span class="note">Controls have no effect on values that the sweep sets.</span>
      {total > MOST_POINTS && (
        <span class="note">
          This page shows the first {MOST_POINTS} of {total} points.
        </span>
      )}
    </fieldset>
  );
}

/** Maximum number of flows whose goodputs are listed individually. */
const MOST_NAMES = 4;

/** The results of each point, after a run of all points. */
export function PointTable() {
  const runs = pointRuns.value;
  if (runs.length < 2) return null;
  return (
    <div class="scroll">
      <table id="points">
        <caption>Points of the sweep</caption>
        <thead>
          <tr>
            <th scope="col">Point</th>
            <th scope="col">Goodput (Mbit/s)</th>
            <th scope="col">Mean RTT (ms)</th>
            <th scope="col">Retransmits</th>
            <th scope="col">Utilisation (%)</th>
            <th scope="col">Mean time in queue (ms)</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((data) => {
            const rows = resultRows(data, Number.POSITIVE_INFINITY);
            const [link] = linkResults(data);
            const isShown = data.point === point.value;
            return (
              <tr key={data.point} class={isShown ? "shown" : ""}>
                <th scope="row">
                  <button type="button" aria-pressed={isShown} onClick={() => choosePoint(data.point)}>
                    {pointLabel(points.value[data.point] ?? {})}
                  </button>
                </th>
                <td class="text">
                  {rows.length <= MOST_NAMES
                    ? rows.map(({ name, goodput }) => `${name} ${figure(goodput.mean)}`).join(", ")
                    : `sum ${figure(sum(rows.map(({ goodput }) => goodput.mean)))}`}
                </td>
                <td>{figure(mean(rows.map(({ rtt }) => rtt.mean)))}</td>
                <td>{figure(sum(rows.map(({ retransmits }) => retransmits.mean)))}</td>
                <td>{figure(link?.utilisation.mean)}</td>
                <td>{figure(link?.queueing.mean)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="note">
        RTT: mean over flows. Retransmits: sum over flows. Utilisation and time in queue: first bottleneck
        link.
      </p>
    </div>
  );
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: number[]): number {
  const known = values.filter(Number.isFinite);
  return known.length === 0 ? Number.NaN : sum(known) / known.length;
}
