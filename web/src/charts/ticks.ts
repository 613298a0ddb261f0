/** Short strokes at the foot of a figure: when the queue dropped or marked packets, and when flows lost some. */

import { flowColour, inks } from "../colours";
import { type RunData, rises } from "../data";
import type { Metric } from "./lines";

/** A row of ticks. */
export interface Ticks {
  /** Times in seconds. */
  x: number[];
  colour: string;
}

/** Maximum number of flows with a row of ticks. More rows would hide the windows. */
const MOST_ROWS = 4;

/** Whether the figure of the windows has a row of ticks for each flow. */
export function hasTicks(data: RunData): boolean {
  return data.first.flows.size <= MOST_ROWS;
}

/** Drops and marks below the queue, and the retransmissions of each flow below its window. */
export function ticksOf(metric: Metric, data: RunData): Ticks[] {
  if (metric.id === "queue" && data.watched !== null) {
    const series = data.first.links.get(data.watched);
    return [
      { x: rises(series, "drops"), colour: inks.value.drop },
      { x: rises(series, "marks"), colour: inks.value.mark },
    ];
  }
  if (metric.id === "window" && hasTicks(data)) {
    return data.sorted(data.first.flows.keys()).map((flow) => ({
      x: rises(data.first.flows.get(flow), "retransmits"),
      colour: flowColour(data.network, data.groupOf(flow)),
    }));
  }
  return [];
}
