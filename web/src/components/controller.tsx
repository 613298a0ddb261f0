/** The state of one controller beside the window of its flow: BBR's phases, CUBIC's curve, or any traced variable. */

import { signal } from "@preact/signals";
import type uPlot from "uplot";
import { cubicCurve, meaningOf, type Phase, phasesOf, unitOf } from "../charts/controller-state";
import { flowName, type Line, largest, valueAt } from "../charts/lines";
import { hovered, Plot, translucent } from "../charts/plot";
import { colour, flowColour, inks } from "../colours";
import type { RunData, Series } from "../data";
import { figure } from "../format";
import { playhead } from "../playback";

/** The entity whose state is shown, if the reader has chosen one. */
const chosen = signal("");
/** The variable in the lower figure, if the reader has chosen one. */
const chosenKey = signal("");

export function hasTraces(data: RunData): boolean {
  return data.first.traces.size > 0;
}

/** Variables that say most about a controller, in order of preference. */
const PREFERRED = ["pacing_gain", "alpha", "rate", "share", "w_max", "bw"];

export function ControllerFigure({ current }: { current: RunData }) {
  const entities = [...current.first.traces.keys()];
  const entity = entities.includes(chosen.value)
    ? chosen.value
    : (preferred(current, entities) ?? entities[0] ?? "");
  const variables = current.first.traces.get(entity) ?? new Map<string, Series>();
  const keys = [...variables.keys()];
  const key = keys.includes(chosenKey.value)
    ? chosenKey.value
    : (PREFERRED.find((name) => keys.includes(name)) ?? keys[0] ?? "");
  const flow = [...current.first.flows.keys()].find((number) => flowName(current, number) === entity);
  const own = flow === undefined ? inks.value.ink : flowColour(current.network, current.groupOf(flow));
  const phases = phasesOf(variables);
  const window = flow === undefined ? [] : windowLines(current, flow, own, variables);
  const variable = variables.get(key);
  const cc = flow === undefined ? "" : (current.network.flows[current.groupOf(flow)]?.cc ?? "");
  const { unit, factor } = unitOf(key, cc);
  const label = unit === "" ? key : `${key} (${unit})`;
  const y = (variable?.value ?? []).map((value) => value * factor);
  const shown: Line[] = variable ? [{ ...PLAIN, label, colour: own, x: variable.t_s ?? [], y }] : [];
  const time = hovered.value ?? playhead.value;
  const phase = [...phases].reverse().find(({ from }) => from <= time);
  const common = { duration: current.network.duration_s, until: playhead.value };
  const behind = (plot: uPlot) => shade(plot, phases, playhead.peek());
  return (
    <figure id="figure-controller">
      <figcaption>
        <span class="title">Controller state</span>
        <select
          aria-label="Controller"
          value={entity}
          onChange={(event) => {
            chosen.value = event.currentTarget.value;
          }}
        >
          {entities.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <select
          aria-label="Variable"
          value={key}
          onChange={(event) => {
            chosenKey.value = event.currentTarget.value;
          }}
        >
          {keys.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <span class="readout">
          {phase && (
            <span class="phase">
              <i style={{ background: phaseColour(phase.name) ?? "transparent" }} />
              {phase.name}
            </span>
          )}
          {[...window.filter((line) => !line.isReference), ...shown].map((line) => (
            <span key={line.label}>
              {line.label} <b>{figure(valueAt(line, time))}</b>
            </span>
          ))}
        </span>
      </figcaption>
      {meaningOf(key, cc) !== "" && (
        <p class="note">
          {key}: {meaningOf(key, cc)}
          {phases.length > 0 && ". Coloured bands: phases of the controller"}
        </p>
      )}
      {window.length > 0 && (
        <Plot
          {...common}
          lines={window}
          most={largest(window)}
          height={110}
          hasTimeAxis={false}
          behind={behind}
          label={`Congestion window of ${entity} in packets over time, with the phases of its controller`}
        />
      )}
      <Plot
        {...common}
        lines={shown}
        most={largest(shown)}
        height={96}
        hasTimeAxis
        behind={behind}
        label={`Variable ${key} of ${entity} over time`}
      />
    </figure>
  );
}

const PLAIN = { dash: [], width: 1.5, isGhost: false };

/** A controller with phases or a curve comes first. */
function preferred(current: RunData, entities: string[]): string | undefined {
  const has = (name: string) => entities.find((entity) => current.first.traces.get(entity)?.has(name));
  return has("phase") ?? has("w_max");
}

function windowLines(current: RunData, flow: number, own: string, variables: Map<string, Series>): Line[] {
  const series = current.first.flows.get(flow);
  const lines: Line[] = [
    { ...PLAIN, label: "window (packets)", colour: own, x: series?.t_s ?? [], y: series?.cwnd ?? [] },
  ];
  const curve = cubicCurve(variables);
  if (curve !== null) {
    const grey = inks.value.grey;
    const most = largest(lines) * 1.3;
    lines.push(
      {
        ...PLAIN,
        label: "CUBIC's curve",
        colour: grey,
        dash: [4, 3],
        x: curve.x,
        y: curve.y.map((w) => (w > most ? Number.NaN : w)),
      },
      {
        ...PLAIN,
        label: "W_max",
        isReference: true,
        colour: grey,
        width: 1,
        dash: [1, 3],
        x: curve.x,
        y: curve.most,
      },
    );
  }
  return lines;
}

/** Number of the colour of each phase; ProbeBW, the usual phase, has none. */
const PHASE_COLOURS: Record<string, number> = { Startup: 4, Drain: 5, ProbeRTT: 3 };

function phaseColour(name: string): string | null {
  const index = PHASE_COLOURS[name];
  return index === undefined ? null : colour(index);
}

function shade(plot: uPlot, phases: Phase[], until: number): void {
  const { ctx, bbox } = plot;
  for (const { name, from, to } of phases) {
    const tint = phaseColour(name);
    if (tint === null || from > until) continue;
    const left = Math.max(plot.valToPos(from, "x", true), bbox.left);
    const right = Math.min(plot.valToPos(Math.min(to, until), "x", true), bbox.left + bbox.width);
    if (right <= left) continue;
    ctx.fillStyle = translucent(tint, 0.22);
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    if (right - left > 50 * devicePixelRatio) {
      ctx.fillStyle = inks.value.grey;
      ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.fillText(name, left + 4 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
    }
  }
}
