/** The drawing of the network: hosts, links, the watched queue, and flows in their colours. */

import { flowColour, inks } from "../colours";
import { type RunData, rateAt } from "../data";
import { figure } from "../format";
import { layout, limitPackets, linkSample, nodesOf, queueKind, waiting } from "../model";
import { playhead } from "../playback";
import type { Network } from "../protocol";
import { chosenLink, described, problem, restart, run, watchedLink } from "../state";

const [WIDTH, NODE] = [440, 5];

export function NetworkDrawing() {
  const network = described.value?.network;
  if (network === undefined)
    return (
      <div class="network empty">{problem.value === "" ? "Starting the simulator …" : "No network yet"}</div>
    );
  const watched = watchedLink(network);
  const { places, columns, rows } = layout(network);
  const height = Math.min(Math.max(130, rows * 34 + 30), 230);
  const labels = rows <= 12;
  // The watched link gets twice the width of the others, because its queue is drawn in it.
  const wide = watched === null ? -1 : (places.get(network.links[watched]?.from ?? -1)?.column ?? -1);
  const units = Math.max(columns - 1, 1) + 1.4;
  const x = (column: number) =>
    34 + ((column + (wide >= 0 && column > wide ? 1.4 : 0)) / units) * (WIDTH - 68);
  const y = (row: number) => (row / rows) * (height - 24) + 6;
  const at = (node: number) => {
    const place = places.get(node) ?? { column: 0, row: 0 };
    return { x: x(place.column), y: y(place.row) };
  };
  return (
    <svg
      class="network"
      id="network"
      viewBox={`0 0 ${WIDTH} ${height}`}
      role="img"
      aria-label={summary(network, watched)}
    >
      {flowLines(network, at)}
      {network.links.map((link, i) =>
        network.flows.some((flow) => flow.path.includes(i)) ? (
          <LinkTarget key={link.name} network={network} link={i} isWatched={i === watched} at={at} />
        ) : null,
      )}
      {watched !== null && <Queue network={network} link={watched} at={at} />}
      {[...places.keys()].map((node) => {
        const { x, y } = at(node);
        const isHost = network.flows.some((flow) => flow.from === node || flow.to === node);
        return (
          <g key={node} class={isHost ? "host" : "switch"}>
            {isHost ? (
              <circle cx={x} cy={y} r={NODE} />
            ) : (
              <rect x={x - NODE} y={y - NODE} width={2 * NODE} height={2 * NODE} rx={2} />
            )}
            {labels && (
              <text x={x} y={y + 17} text-anchor="middle">
                {network.nodes[node]?.replace(/^.*\.host$/, "")}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

type At = (node: number) => { x: number; y: number };

/** One line per path and colour, side by side where they share a link. */
function flowLines(network: Network, at: At) {
  const strands = new Map<string, { nodes: number[]; colour: string; name: string }>();
  network.flows.forEach((flow, i) => {
    const colour = flowColour(network, i);
    const nodes = nodesOf(network, flow.path, flow.from);
    const key = `${nodes.join(">")} ${colour}`;
    if (!strands.has(key)) strands.set(key, { nodes, colour, name: flow.name });
  });
  const all = [...strands.values()];
  const gap = Math.min(4, 22 / Math.max(all.length, 1));
  return all.map(({ nodes, colour, name }, i) => {
    const offset = (i - (all.length - 1) / 2) * gap;
    const points = nodes.map((node, j) => {
      const { x, y } = at(node);
      // Hosts have one strand in the middle; strands spread between the first and the last switch.
      const isEnd = j === 0 || j === nodes.length - 1;
      return { x, y: isEnd ? y : y + offset };
    });
    const path = points
      .map((point, j) => {
        const before = points[j - 1];
        if (before === undefined) return `M${point.x} ${point.y}`;
        const middle = (before.x + point.x) / 2;
        return `C${middle} ${before.y} ${middle} ${point.y} ${point.x} ${point.y}`;
      })
      .join("");
    return (
      <path key={`${name}${i}`} class="flow-path" data-flow={name} d={path} stroke={colour}>
        <title>{name}</title>
      </path>
    );
  });
}

function LinkTarget(props: { network: Network; link: number; isWatched: boolean; at: At }) {
  const { network, link, isWatched, at } = props;
  const info = network.links[link];
  if (info === undefined) return null;
  const [from, to] = [at(info.from), at(info.to)];
  const choose = () => {
    chosenLink.value = info.name;
    restart();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a drawing has no <button>
    <line
      class={`link-target${isWatched ? " watched" : ""}`}
      x1={from.x}
      y1={from.y}
      x2={to.x}
      y2={to.y}
      role="button"
      tabIndex={isWatched ? -1 : 0}
      aria-label={`Show the queue of ${info.name}`}
      aria-pressed={isWatched}
      onClick={choose}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose();
        }
      }}
    >
      <title>{`${info.name}: ${rateText(rateAt(info.rates_bps, 0))}. Click to show its queue.`}</title>
    </line>
  );
}

/** The queue of the watched link, filled by the packets of each flow. */
function Queue({ network, link, at }: { network: Network; link: number; at: At }) {
  const info = network.links[link];
  const current = run.value;
  if (info === undefined) return null;
  const [from, to] = [at(info.from), at(info.to)];
  const time = playhead.value;
  const [left, width, height] = [from.x + 14, Math.max(40, (to.x - from.x) * 0.52), 34];
  const top = from.y + (to.y - from.y) * 0.3 - height / 2;
  const controller = network.controlled.find((controlled) => controlled.link === link);
  const isShown = current !== null && current.watched === link;
  const packets = isShown ? (linkSample(current, "queue_packets", time) ?? 0) : 0;
  const limit = limitPackets(info);
  const most = limit !== null && limit < 5000 ? limit : Math.max(50, isShown ? mostQueued(current) : 0);
  const filled = Math.min(packets / most, 1) * (width - 4);
  let right = left + width - 2;
  const parts = isShown ? shares(current, time) : [];
  return (
    <g class="queue">
      <rect class="box" x={left} y={top} width={width} height={height} rx={3} />
      {parts.map(({ colour, share }) => {
        right -= filled * share;
        return (
          <rect key={colour} x={right} y={top + 2} width={filled * share} height={height - 4} fill={colour} />
        );
      })}
      {parts.length === 0 && (
        <rect x={right - filled} y={top + 2} width={filled} height={height - 4} fill={inks.value.grey} />
      )}
      <text class="strong" x={left + width / 2} y={top - 6} text-anchor="middle">
        {`${figure(packets)}${limit === null ? "" : ` of ${figure(limit)}`} packets · ${controller?.kind ?? queueKind(info)}`}
      </text>
      <text x={(left + to.x) / 2} y={top + height + 15} text-anchor="middle">
        {`${rateText(rateAt(info.rates_bps, time))} · ${figure(info.delay_s * 1e3)} ms`}
      </text>
    </g>
  );
}

/** The share of each colour in the queue. */
function shares(current: RunData, time: number): { colour: string; share: number }[] {
  const recorded = current.packets.arrived.at(-1) ?? 0;
  if (current.packetsAreCut && time > recorded) return [];
  const queued = waiting(current.packets, time, linkSample(current, "queue_packets", time));
  const counts = new Map<string, number>();
  for (const packet of queued) {
    const colour = flowColour(current.network, current.groupOf(current.packets.flow[packet] as number));
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  return [...counts].sort().map(([colour, count]) => ({ colour, share: count / queued.length }));
}

function mostQueued(current: RunData): number {
  const series = current.watched === null ? undefined : current.first.links.get(current.watched);
  return (series?.queue_packets ?? []).reduce((most, value) => Math.max(most, value), 0);
}

export function rateText(bps: number): string {
  return bps >= 1e9 ? `${figure(bps / 1e9)} Gbit/s` : `${figure(bps / 1e6)} Mbit/s`;
}

function summary(network: Network, watched: number | null): string {
  const flows = network.flows.map(
    (flow) => `${flow.name} from ${network.nodes[flow.from]} to ${network.nodes[flow.to]}`,
  );
  const link = watched === null ? undefined : network.links[watched];
  const queue = link
    ? ` The queue shown is that of ${link.name}, ${rateText(rateAt(link.rates_bps, 0))}.`
    : "";
  return `Network with ${network.nodes.length} nodes. Flows: ${flows.slice(0, 8).join(", ")}.${queue}`;
}
