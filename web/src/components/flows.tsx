/** The flows: one entry for each `[[flows]]` of the scenario. */

import { flowColour } from "../colours";
import { parseTime, toml, writeTime } from "../format";
import type { Controller, Description } from "../protocol";
import { asToml, list, newFlow, shown, type Table, table } from "../scenario";
import { add, catalogue, remove, set } from "../state";
import { SliderField, TextField } from "./field";
import { Parameters } from "./parameters";

export function Flows({ description }: { description: Description }) {
  const entries = list(description.set.flows).map((entry) => table(entry));
  return (
    <fieldset>
      <legend>Flows</legend>
      {entries.map((entry, i) => (
        <Flow key={i} description={description} entry={entry} index={i} isOnly={entries.length === 1} />
      ))}
      <div class="add">
        <button type="button" id="add-flow" onClick={() => add("flows", newFlow(description, "cubic"))}>
          + Add a CUBIC flow
        </button>
        <button type="button" id="add-bbr" onClick={() => add("flows", newFlow(description, "bbr"))}>
          + Add a BBR flow
        </button>
      </div>
    </fieldset>
  );
}

interface FlowProps {
  description: Description;
  entry: Table;
  index: number;
  isOnly: boolean;
}

function Flow({ description, entry, index, isOnly }: FlowProps) {
  const { network, scenario } = description;
  const full = table(list(scenario.flows)[index]);
  const group = network.flows.findIndex((flow) => flow.entry === index);
  const members = network.flows.filter((flow) => flow.entry === index);
  const number = members.reduce((sum, flow) => sum + flow.count, 0);
  const name = shown(entry.name) || (members[0]?.name ?? `flow ${index + 1}`);
  const given = entry.cc ?? full.cc;
  const cc = typeof given === "string" ? given : shown(table(given).name) || "cubic";
  const isTcp = (entry.transport ?? "tcp") === "tcp";
  const base = `flows.${index}`;
  const controller = find(cc);
  return (
    <div class="flow" data-flow={index}>
      <div class="head">
        <span class="swatch" style={{ background: group < 0 ? "transparent" : flowColour(network, group) }} />
        {isTcp ? (
          <select
            aria-label={`Congestion controller of ${name}`}
            title={controller?.summary}
            value={cc}
            onChange={(event) => set(`${base}.cc`, toml(event.currentTarget.value))}
          >
            <Choices current={cc} />
          </select>
        ) : (
          <span class="other">{shown(entry.transport)}</span>
        )}
        <span class="name">{number > 1 ? `${name} × ${number}` : name === cc ? "" : name}</span>
        <button
          type="button"
          class="remove"
          aria-label={`Remove ${name}`}
          title="Remove this flow"
          disabled={isOnly}
          onClick={() => remove("flows", index)}
        >
          ×
        </button>
      </div>
      <SliderField
        id={`start-${index}`}
        label="Start"
        path={`${base}.start`}
        value={shown(entry.start)}
        fallback="0s"
        range={[0, network.duration_s]}
        parse={parseTime}
        write={writeTime}
        onSet={(text) => set(`${base}.start`, parseTime(text) === 0 ? "" : asToml(text))}
      />
      <div class="details">
        <details class="parameters">
          <summary>More settings of this flow</summary>
          <div class="grid">
            {MORE.map(([key, label, fallback, title]) => {
              const id = `flow-${index}-${key}`;
              return [
                <label key={`${id}-label`} for={id} title={title}>
                  {label}
                </label>,
                <TextField
                  key={id}
                  id={id}
                  value={shown(entry[key])}
                  placeholder={fallback}
                  title={title}
                  onSet={(text) => set(`${base}.${key}`, asToml(text))}
                />,
              ];
            })}
          </div>
        </details>
        {isTcp && controller !== undefined && (
          <Parameters controller={{ ...controller, name: cc }} values={table(entry.cc)} base={`${base}.cc`} />
        )}
      </div>
    </div>
  );
}

/** Further keys of a flow: key, label, default, explanation. */
const MORE: [string, string, string, string][] = [
  ["name", "Name", "from the controller", "Name of the flow in the results"],
  ["count", "Number of flows", "1", "Number of equal flows"],
  ["stop", "Stop", "end of the run", "Time at which the application stops"],
  ["size", "Size", "unlimited", "Application bytes to send, such as 2MB"],
  ["ecn", "ECN", "false", "Whether the flow negotiates ECN: true or false"],
  ["pacing", "Pacing", "false", "Whether a window-based congestion controller also paces: true or false"],
];

function find(cc: string): Controller | undefined {
  return catalogue.value.congestion.find(
    ({ name, presets }) => name === cc || presets?.some((preset) => preset.name === cc),
  );
}

/** The congestion controllers by family, with their named variants. */
function Choices({ current }: { current: string }) {
  const families = new Map<string, { name: string; summary: string }[]>();
  for (const { name, summary, family = "others", presets = [] } of catalogue.value.congestion) {
    const members = families.get(family) ?? [];
    members.push({ name, summary }, ...presets);
    families.set(family, members);
  }
  const isKnown = find(current) !== undefined;
  return (
    <>
      {!isKnown && <option value={current}>{current}</option>}
      {[...families].map(([family, members]) => (
        <optgroup key={family} label={family}>
          {members.map(({ name, summary }) => (
            <option key={name} value={name} title={summary}>
              {name}
            </option>
          ))}
        </optgroup>
      ))}
    </>
  );
}
