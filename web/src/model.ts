/** The state of the network and its queue at a time, for the drawing. */

import type { RunData } from "./data";
import { Fate, type PacketLog } from "./packets";
import type { LinkInfo, Network } from "./protocol";

/** The limit of a link's queue in packets of 1500 bytes, or `null` if the queue has no limit or several limits. */
export function limitPackets(link: LinkInfo): number | null {
  const limit = (link.queue as { limit?: unknown } | null)?.limit;
  if (typeof limit !== "object" || limit === null) return null;
  const { packets, bytes } = limit as { packets?: unknown; bytes?: unknown };
  if (typeof packets === "number") return packets;
  if (typeof bytes === "number") return bytes / 1500;
  return null;
}

export function queueKind(link: LinkInfo): string {
  const queue = link.queue as { kind?: string; mark?: { kind?: string } } | null;
  const mark = queue?.mark?.kind;
  return mark !== undefined && mark !== "none" ? mark : (queue?.kind ?? "fifo");
}

/** The watched link's last sample in this column, up to this time. */
export function linkSample(run: RunData, column: string, time: number): number | undefined {
  const series = run.watched === null ? undefined : run.first.links.get(run.watched);
  const times = series?.t_s ?? [];
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= time + 1e-9) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? undefined : series?.[column]?.[low - 1];
}

/** The search for waiting packets ends after this number of consecutive packets that do not wait. */
const SETTLED = 300;

/**
 * The packets that wait in the queue at a time, the oldest first.
 *
 * The fate of the last packets before the end of the results is unknown. The newest of these packets count as
 * waiting, up to the sampled length of the queue.
 */
export function waiting(log: PacketLog, time: number, sampled = 0): number[] {
  const found: number[] = [];
  let settled = 0;
  for (let i = log.after(time) - 1; i >= 0 && settled < SETTLED; i--) {
    const isOpen = log.fate[i] === Fate.Waiting && found.length < sampled;
    if (isOpen || (log.fate[i] === Fate.Through && log.began(i) > time)) {
      found.push(i);
      settled = 0;
    } else {
      settled += 1;
    }
  }
  return found.reverse();
}

export interface Place {
  column: number;
  row: number;
}

/**
 * Columns and rows of the nodes that flows cross. Data goes from left to right: a node is to the right of all nodes
 * before it on the flows' paths. Paths that together form a circle keep the order of the first flow.
 */
export function layout(network: Network): { places: Map<number, Place>; columns: number; rows: number } {
  const column = new Map<number, number>();
  const paths = network.flows.map((flow) => nodesOf(network, flow.path, flow.from));
  for (const path of paths) for (const node of path) column.set(node, 0);
  for (let round = 0; round < Math.min(column.size, 64); round++) {
    let changed = false;
    for (const path of paths) {
      for (let i = 1; i < path.length; i++) {
        const least = (column.get(path[i - 1] as number) as number) + 1;
        const node = path[i] as number;
        if ((column.get(node) as number) < least && least < column.size) {
          column.set(node, least);
          changed = true;
        }
      }
    }
    if (!changed) break;
  }
  // Senders stand directly before the first switch of their path.
  for (const path of paths) {
    const [first, second] = [path[0] as number, path[1]];
    if (second !== undefined && !paths.some((other) => other.indexOf(first) > 0)) {
      column.set(first, Math.max(0, (column.get(second) as number) - 1));
    }
  }
  const used = [...new Set(column.values())].sort((a, b) => a - b);
  const members = used.map((value) => [...column].filter(([, c]) => c === value).map(([node]) => node));
  const places = new Map<number, Place>();
  const rows = Math.max(1, ...members.map((nodes) => nodes.length));
  members.forEach((nodes, at) => {
    nodes.forEach((node, i) => {
      places.set(node, { column: at, row: ((i + 0.5) / nodes.length) * rows });
    });
  });
  return { places, columns: used.length, rows };
}

/** The nodes of a path. */
export function nodesOf(network: Network, path: number[], from: number): number[] {
  return [from, ...path.map((link) => network.links[link]?.to ?? from)];
}
