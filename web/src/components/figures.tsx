/** The figures of a run, one below the other on the same time axis. */

import { useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Line, largest, linesOf, METRICS, type Metric, MOST_LINES, valueAt } from "../charts/lines";
import { hovered, Plot, zoom } from "../charts/plot";
import { hasTicks, ticksOf } from "../charts/ticks";
import { inks } from "../colours";
import type { RunData } from "../data";
import { figure } from "../format";
import { linkSample } from "../model";
import { playhead } from "../playback";
import { compare, other, run, tick } from "../state";
import { ghosts as ghostRuns } from "../sweep";
import { ControllerFigure, hasTraces } from "./controller";

export function Figures() {
  tick.value;
  const [current, against] = [run.value, other.value];
  // A zoom of a longer run would show nothing.
  useEffect(() => {
    if (zoom.value !== null && zoom.value[1] > (current?.network.duration_s ?? 0)) zoom.value = null;
  }, [current]);
  if (current === null) return <div class="figures" />;
  const isSideBySide = compare.value === "side" && against !== null;
  return (
    <div class={`figures${isSideBySide ? " side" : ""}`}>
      {isSideBySide && (
        <div class="heads">
          <strong>Other run</strong>
          <strong>This run</strong>
        </div>
      )}
      {METRICS.map((metric, i) => (
        <MetricFigure
          key={metric.id}
          metric={metric}
          current={current}
          against={against}
          isSideBySide={isSideBySide}
          isLast={i === METRICS.length - 1 && !hasTraces(current)}
        />
      ))}
      {hasTraces(current) && <ControllerFigure current={current} />}
      {current.first.flows.size > MOST_LINES && (
        <p class="note">
          The figures show {MOST_LINES} of {current.first.flows.size} sampled flows.
        </p>
      )}
      {current.seeds.length > 1 && (
        <p class="note">
          Lines are means over the seeds. Ticks, the values of the queue and Controller state are from the
          first seed.
        </p>
      )}
      <p class="note">
        Drag over a figure to zoom in; double-click to see the whole run.
        {zoom.value !== null && (
          <button
            type="button"
            id="unzoom"
            onClick={() => {
              zoom.value = null;
            }}
          >
            Show the whole run
          </button>
        )}
      </p>
    </div>
  );
}

interface MetricProps {
  metric: Metric;
  current: RunData;
  against: RunData | null;
  isSideBySide: boolean;
  isLast: boolean;
}

function MetricFigure({ metric, current, against, isSideBySide, isLast }: MetricProps) {
  // Lines change with new rows, not with the playhead.
  const own = useComputed(() => {
    tick.value;
    inks.value;
    return run.value === null ? [] : linesOf(metric, run.value, false);
  }).value;
  const ghosts = useComputed(() => ghostRuns.value.flatMap((data) => linesOf(metric, data, true))).value;
  const otherLines = isSideBySide && against !== null ? linesOf(metric, against, false) : [];
  const most = Math.max(
    largest(own.filter((line) => !line.isReference || metric.id === "goodput")),
    largest(ghosts),
  );
  const duration = Math.max(current.network.duration_s, against?.network.duration_s ?? 0);
  const ticks = ticksOf(metric, current);
  const common = { duration, most, height: isLast ? 142 : 122, hasTimeAxis: isLast };
  return (
    <figure
      id={`figure-${metric.id}`}
      data-lines={own.filter((line) => !line.isReference).length}
      data-ticks={ticks.reduce((total, { x }) => total + x.length, 0)}
    >
      <figcaption>
        <span class="title">
          {metric.title} ({metric.unit})
        </span>
        {isSideBySide && against !== null && <Readout lines={otherLines} metric={metric} data={against} />}
        <Readout lines={own} metric={metric} data={current} />
      </figcaption>
      <div class="pair">
        {isSideBySide && against !== null && (
          <Plot
            {...common}
            lines={otherLines}
            until={Number.POSITIVE_INFINITY}
            label={describe(metric, otherLines, "the other run")}
            ticks={ticksOf(metric, against)}
          />
        )}
        <Plot
          {...common}
          lines={isSideBySide ? own : [...ghosts, ...own]}
          until={playhead.value}
          label={describe(metric, own, "this run")}
          ticks={ticks}
        />
      </div>
    </figure>
  );
}

/** Maximum number of flows whose values are listed one by one. */
const MOST_NAMES = 6;

/** The values under the pointer, or at the playhead. */
function Readout({ lines, metric, data }: { lines: Line[]; metric: Metric; data: RunData }) {
  const time = hovered.value ?? playhead.value;
  if (metric.id === "queue") return <QueueReadout data={data} time={time} />;
  const shown = lines.filter((line) => !line.isReference);
  return (
    <span class="readout">
      {shown.length <= MOST_NAMES ? (
        shown.map((line) => (
          <span key={line.label}>
            <i style={{ background: line.colour }} />
            {line.label} <b>{figure(valueAt(line, time))}</b>
          </span>
        ))
      ) : (
        <Many lines={shown} metric={metric} time={time} />
      )}
      {metric.id === "window" && hasTicks(data) && <span class="at">ticks: retransmissions</span>}
      {hovered.value !== null && metric.id === "goodput" && <span class="at">at {figure(time)} s</span>}
    </span>
  );
}

/** The sum of the goodputs of many flows, or the mean and the range of another figure. */
function Many({ lines, metric, time }: { lines: Line[]; metric: Metric; time: number }) {
  const values = lines
    .map((line) => valueAt(line, time))
    .filter((value): value is number => value !== undefined && Number.isFinite(value));
  const sum = values.reduce((total, value) => total + value, 0);
  return metric.id === "goodput" ? (
    <span>
      sum of {lines.length} flows <b>{figure(sum)}</b>
    </span>
  ) : (
    <span>
      mean of {lines.length} flows <b>{figure(sum / values.length)}</b> ({figure(Math.min(...values))} to{" "}
      {figure(Math.max(...values))})
    </span>
  );
}

function QueueReadout({ data, time }: { data: RunData; time: number }) {
  const at = (column: string) => linkSample(data, column, time);
  const [bytes, capacity] = [at("queue_bytes"), at("capacity_bps")];
  const delay = bytes !== undefined && capacity ? (bytes * 8e3) / capacity : undefined;
  const [drops, marks, losses] = [at("drops"), at("marks"), at("random_losses")];
  return (
    <span class="readout">
      <span>
        {data.watched === null ? "" : data.network.links[data.watched]?.name}{" "}
        <b>{figure(at("queue_packets"))}</b>
      </span>
      <span>
        delay (ms) <b>{figure(delay)}</b>
      </span>
      <span>
        <i style={{ background: inks.value.drop }} />
        drops so far <b>{figure(drops)}</b>
      </span>
      {(marks ?? 0) > 0 && (
        <span>
          <i style={{ background: inks.value.mark }} />
          marks so far <b>{figure(marks)}</b>
        </span>
      )}
      {(losses ?? 0) > 0 && (
        <span>
          random losses so far <b>{figure(losses)}</b>
        </span>
      )}
    </span>
  );
}

/** A sentence for readers who do not see the figure. */
function describe(metric: Metric, lines: Line[], which: string): string {
  const parts = lines
    .filter((line) => !line.isReference)
    .slice(0, 8)
    .map((line) => `${line.label} ends at ${figure(line.y[line.y.length - 1])}`);
  return `${metric.title} in ${metric.unit} over time, ${which}: ${parts.join(", ")}. The table has the values.`;
}
