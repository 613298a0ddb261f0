/** One figure over time, drawn by uPlot. All figures of the page share the time axis, the cursor and the zoom. */

import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { inks } from "../colours";
import { figure } from "../format";
import { align, type Line } from "./lines";
import type { Ticks } from "./ticks";

/** The time under the pointer, or `null`. */
export const hovered = signal<number | null>(null);
/** The visible interval after a zoom, or `null` for the whole run. */
export const zoom = signal<[number, number] | null>(null);

const cursors = uPlot.sync("time");

interface Props {
  lines: Line[];
  duration: number;
  /** Rows after this time are not shown yet. */
  until: number;
  /** Largest value of the axis. */
  most: number;
  height: number;
  label: string;
  /** Short vertical lines at the lower edge, e.g. drops. */
  ticks?: Ticks[];
  hasTimeAxis: boolean;
  /** Draws behind the lines. */
  behind?: (plot: uPlot) => void;
}

export function Plot(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shape = JSON.stringify([
    props.lines.map(({ colour, dash, isGhost, low, label }) => [colour, dash, isGhost, !!low, label]),
    props.height,
    props.hasTimeAxis,
    inks.value.ink,
  ]);

  // A new set of lines needs a new plot; new rows do not.
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot(options(latest, element.clientWidth), cut(latest.current), element);
    plot.current = made;
    const resize = new ResizeObserver(() => {
      if (element.clientWidth > 0)
        made.setSize({ width: element.clientWidth, height: latest.current.height });
    });
    resize.observe(element);
    const stop = effect(() => {
      zoom.value;
      made.setData(cut(latest.current), true);
    });
    return () => {
      stop();
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData(cut(props), true);
  });

  return (
    <div
      class="plot"
      ref={place}
      role="img"
      aria-label={props.label}
      style={{ height: `${props.height}px` }}
    />
  );
}

/** The rows until the playhead. */
function cut({ lines, until }: Props): uPlot.AlignedData {
  const columns = align(lines.map((line) => (line.isGhost ? line : upTo(line, until))));
  return columns as uPlot.AlignedData;
}

function upTo(line: Line, until: number): Line {
  const last = line.x[line.x.length - 1];
  if (last === undefined || last <= until + 1e-9) return line;
  let rows = line.x.findIndex((t) => t > until + 1e-9);
  if (rows < 0) rows = line.x.length;
  const short: Line = { ...line, x: line.x.slice(0, rows), y: line.y.slice(0, rows) };
  if (line.low && line.high)
    Object.assign(short, { low: line.low.slice(0, rows), high: line.high.slice(0, rows) });
  return short;
}

function options(latest: { current: Props }, width: number): uPlot.Options {
  const { lines, height, hasTimeAxis } = latest.current;
  const ink = inks.value;
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  for (const line of lines) {
    const stroke = line.isGhost ? translucent(line.colour, 0.5) : line.colour;
    const at = series.length;
    series.push({
      label: line.label,
      stroke,
      width: line.isGhost ? 1.25 : line.width,
      dash: line.isGhost ? [2, 3] : line.dash,
      points: { show: false },
      ...(line.fill ? { fill: translucent(line.colour, 0.22) } : {}),
    });
    if (line.low) {
      const edge: uPlot.Series = { stroke: "transparent", width: 0, points: { show: false } };
      series.push(edge, { ...edge });
      bands.push({ series: [at + 1, at + 2], fill: translucent(line.colour, 0.18) });
    }
  }
  const axis: uPlot.Axis = {
    stroke: ink.grey,
    font: "11px system-ui, sans-serif",
    grid: { stroke: ink.faint, width: 1 },
    ticks: { show: false },
  };
  return {
    width: Math.max(width, 50),
    height,
    series,
    bands,
    padding: [6, 24, hasTimeAxis ? 0 : 6, 0],
    legend: { show: false },
    cursor: {
      sync: { key: cursors.key, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      points: { show: false },
      y: false,
      bind: {
        // A double click shows the whole run again in all figures.
        dblclick: () => () => {
          zoom.value = null;
          return null;
        },
      },
    },
    scales: {
      x: {
        time: false,
        range: () => zoom.value ?? [0, latest.current.duration],
      },
      y: { range: () => [0, nice(latest.current.most)] },
    },
    axes: [
      {
        ...axis,
        size: hasTimeAxis ? 24 : 0,
        values: hasTimeAxis
          ? (_, values) => values.map((t) => timeLabel(t, latest.current.duration))
          : () => [],
      },
      { ...axis, size: 46, space: 24, values: (_, values) => values.map((value) => figure(value)) },
    ],
    hooks: {
      setCursor: [
        (plot) => {
          const left = plot.cursor.left ?? -1;
          hovered.value = left < 0 ? null : plot.posToVal(left, "x");
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          zoom.value = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
      ],
      // Lines are drawn over the ticks, because dense ticks would hide a small window.
      drawClear: [(plot) => latest.current.behind?.(plot), (plot) => drawTicks(plot, latest.current)],
    },
  };
}

function drawTicks(plot: uPlot, { ticks = [], until }: Props): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ticks.forEach(({ x, colour }, row) => {
    ctx.fillStyle = translucent(colour, 0.5);
    const bottom = bbox.top + bbox.height - row * 7 * ratio;
    for (const t of x) {
      if (t > until + 1e-9) break;
      const left = plot.valToPos(t, "x", true);
      if (left < bbox.left || left > bbox.left + bbox.width) continue;
      ctx.fillRect(left - ratio / 2, bottom - 6 * ratio, ratio * 1.5, 6 * ratio);
    }
  });
}

/** An upper end of the axis with some room above the largest value. */
function nice(most: number): number {
  return most > 0 ? most * 1.08 : 1;
}

function timeLabel(seconds: number, duration: number): string {
  return duration < 1.5
    ? `${Number((seconds * 1e3).toPrecision(4))} ms`
    : `${Number(seconds.toPrecision(4))} s`;
}

export function translucent(hex: string, alpha: number): string {
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}
