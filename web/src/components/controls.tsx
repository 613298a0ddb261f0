/** The controls: the bottleneck, the run, the flows and the rate controller. */

import {
  type LengthUnit,
  parseLength,
  parseProbability,
  parseRate,
  parseTime,
  toml,
  writeLength,
  writeProbability,
  writeRate,
  writeTime,
} from "../format";
import type { Description, Json } from "../protocol";
import {
  asToml,
  type LinkPlace,
  linkPlace,
  list,
  type QueueValue,
  queueToml,
  queueValue,
  shown,
  table,
} from "../scenario";
import { add, catalogue, described, MOST_SEEDS, remove, set, watchedLink } from "../state";
import { Row, SliderField, TextField } from "./field";
import { Flows } from "./flows";
import { Parameters } from "./parameters";

export function Controls() {
  const description = described.value;
  if (description === null) return null;
  return (
    <div class="controls">
      <LinkControls description={description} />
      <Flows description={description} />
      <RateController description={description} />
      <RunControls description={description} />
    </div>
  );
}

function watchedName(description: Description): string {
  const link = watchedLink(description.network);
  return link === null ? "" : (description.network.links[link]?.name ?? "");
}

function LinkControls({ description }: { description: Description }) {
  const name = watchedName(description);
  const place = linkPlace(description, name);
  const { base, set: raw, full } = place;
  return (
    <fieldset>
      <legend>
        Link <span class="name">{name}</span>
      </legend>
      {raw.trace === undefined && (
        <SliderField
          id="rate"
          label="Rate"
          path={`${base}.rate`}
          value={shown(raw.rate)}
          fallback={shown(full.rate) || "set by the topology"}
          range={[1e6, 1e10]}
          isLogarithmic
          parse={parseRate}
          write={writeRate}
          title="Rate of the link in bits per second, with IP headers"
        />
      )}
      <Delays place={place} />
      <QueueControls place={place} />
      <SliderField
        id="loss"
        label="Random loss"
        path={`${base}.loss`}
        value={lossText(raw.loss)}
        fallback="0"
        range={[0.0001, 0.1]}
        isLogarithmic
        hasZero
        parse={parseProbability}
        write={writeProbability}
        onSet={(text) => set(`${base}.loss`, parseProbability(text) === 0 ? "" : asToml(text))}
        title="Probability that the link loses a packet behind the queue"
      />
    </fieldset>
  );
}

/** Independent losses as a percentage; other models by their name. */
function lossText(loss: Json | undefined): string {
  const { model, p } = table(loss);
  if (model === "bernoulli" || model === undefined) {
    const probability = parseProbability(p ?? loss ?? 0);
    return probability > 0 ? writeProbability(probability) : "";
  }
  return shown(model);
}

function Delays({ place: { base, set: raw, full } }: { place: LinkPlace }) {
  const range: [number, number] = [1e-4, 0.4];
  const common = { range, isLogarithmic: true, parse: parseTime, write: writeTime };
  const rtts = list(raw.rtts).map(shown);
  if (rtts.length > 0) {
    return (
      <>
        {rtts.map((rtt, i) => (
          <SliderField
            key={i}
            {...common}
            id={i === 0 ? "rtt" : `rtt-${i}`}
            label={`RTT of pair ${i + 1}`}
            path={`${base}.rtts`}
            value={rtt}
            fallback=""
            onSet={(text) => {
              const changed = rtts.map((other, j) => toml(i === j ? text : other));
              set(`${base}.rtts`, `[${changed.join(", ")}]`);
            }}
          />
        ))}
      </>
    );
  }
  const hasRtt =
    base === "topology" && raw.delay === undefined && (raw.kind === "dumbbell" || raw.kind === "star");
  const key = hasRtt ? "rtt" : "delay";
  return (
    <SliderField
      {...common}
      id="rtt"
      label={hasRtt ? "RTT" : "Delay"}
      path={`${base}.${key}`}
      value={shown(raw[key])}
      fallback={shown(full[key]) || "0s"}
      title={hasRtt ? "Round-trip time without queueing" : "One-way propagation delay"}
    />
  );
}

const KINDS: [string, string][] = [
  ["fifo", "FIFO (tail drop)"],
  ["codel", "CoDel"],
  ["fq-codel", "FQ-CoDel"],
  ["red", "RED"],
  ["threshold", "Marking threshold"],
];
const RANGES: Record<LengthUnit, [number, number]> = {
  bdp: [0.1, 20],
  p: [1, 5000],
  bytes: [1500, 1e7],
  infinite: [0.1, 20],
};

function QueueControls({ place: { base, set: raw } }: { place: LinkPlace }) {
  const queue = queueValue(raw.queue);
  const length = parseLength(queue.limit);
  const unit: LengthUnit = length === null || length.unit === "infinite" ? "bdp" : length.unit;
  const isKnown = KINDS.some(([kind]) => kind === queue.kind);
  const put = (change: Partial<QueueValue>) => set(`${base}.queue`, queueToml({ ...queue, ...change }));
  return (
    <>
      {isKnown && (
        <SliderField
          id="buffer"
          label="Queue length"
          path={`${base}.queue`}
          value={queue.limit}
          fallback={queue.kind === "fifo" ? "1bdp" : queue.kind === "fq-codel" ? "10240p" : "1000p"}
          range={RANGES[unit]}
          isLogarithmic
          parse={(text) => parseLength(text)?.amount ?? Number.NaN}
          write={(value) => writeLength(value, unit)}
          ends={["shallow buffer", "deep buffer"]}
          onSet={(text) => put({ limit: text.trim() })}
          title="Maximum length of the queue: 2bdp (bandwidth-delay products, rate x RTT), 100p (packets), 64kB, or infinite"
        />
      )}
      <Row id="aqm" label="Queue type">
        <select
          id="aqm"
          value={isKnown ? queue.kind : "other"}
          onChange={(event) => put({ kind: event.currentTarget.value, others: {} })}
        >
          {KINDS.map(([kind, label]) => (
            <option key={kind} value={kind}>
              {label}
            </option>
          ))}
          {!isKnown && <option value="other">{queue.kind} (edit as TOML)</option>}
        </select>
        {["codel", "fq-codel", "red"].includes(queue.kind) && (
          <label class="check" title="Marks packets of flows with ECN instead of dropping them">
            <input
              type="checkbox"
              checked={queue.others.ecn === true}
              onChange={(event) =>
                put({ others: { ...queue.others, ecn: event.currentTarget.checked ? true : null } })
              }
            />
            mark (ECN)
          </label>
        )}
        {queue.kind === "threshold" && (
          <label class="check" for="mark">
            mark above
            <TextField
              id="mark"
              value={shown(queue.others.mark)}
              placeholder="65"
              onSet={(text) => {
                const mark = /^\d+$/.test(text.trim()) ? Number(text) : text.trim();
                put({ others: { ...queue.others, mark } });
              }}
            />
          </label>
        )}
      </Row>
    </>
  );
}

function RateController({ description }: { description: Description }) {
  const controllers = list(description.set.rate_controllers).map((entry) => table(entry));
  const first = controllers[0];
  const kind = typeof first?.kind === "string" ? first.kind : "";
  const entry = catalogue.value.rate.find((controller) => controller.name === kind);
  const choose = (chosen: string) => {
    if (chosen === "") remove("rate_controllers", 0);
    else if (first === undefined) {
      add("rate_controllers", `kind = ${toml(chosen)}\nlink = ${toml(watchedName(description))}`);
    } else set("rate_controllers.0.kind", toml(chosen));
  };
  return (
    <fieldset>
      <legend>Rate controller</legend>
      <Row id="rate-controller" label="At the switch">
        <select id="rate-controller" value={kind} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">none</option>
          {catalogue.value.rate.map(({ name, summary }) => (
            <option key={name} value={name} title={summary}>
              {name}
            </option>
          ))}
        </select>
        {controllers.length > 1 && (
          <span class="note">{controllers.length} controllers; the first is shown</span>
        )}
      </Row>
      {entry !== undefined && (
        <Parameters controller={entry} values={table(first?.params)} base="rate_controllers.0.params" />
      )}
    </fieldset>
  );
}

function RunControls({ description: { set: raw, scenario, seeds } }: { description: Description }) {
  const probes = table(raw.probes);
  return (
    <fieldset>
      <legend>Run</legend>
      <SliderField
        id="duration"
        label="Duration"
        path="duration"
        value={shown(raw.duration)}
        fallback={shown(scenario.duration)}
        range={[0.1, 120]}
        isLogarithmic
        parse={parseTime}
        write={writeTime}
      />
      <SliderField
        id="interval"
        label="Sample every"
        path="probes.interval"
        value={shown(probes.interval)}
        fallback="100ms"
        range={[1e-3, 1]}
        isLogarithmic
        parse={parseTime}
        write={writeTime}
        title="Time between two samples of the figures"
      />
      <SliderField
        id="seeds"
        label="Seeds"
        path="sweep.seeds"
        value={shown(table(raw.sweep).seeds)}
        fallback="1"
        range={[1, MOST_SEEDS]}
        parse={Number}
        write={(value) => String(Math.round(value))}
        title="Number of runs with different random numbers. The figures show their mean and range."
      />
      {seeds.length > MOST_SEEDS && (
        <p class="note">
          The scenario has {seeds.length} seeds. This page runs the first {MOST_SEEDS}.
        </p>
      )}
      <Row label="Traces">
        <label class="check">
          <input
            type="checkbox"
            id="traces"
            checked={probes.traces === true}
            onChange={(event) => set("probes.traces", event.currentTarget.checked ? "true" : "")}
          />
          show the state of controllers
        </label>
      </Row>
    </fieldset>
  );
}
