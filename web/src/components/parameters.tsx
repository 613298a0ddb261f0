/** The parameters of a congestion controller or rate controller, from the catalogue. */

import type { Controller, Parameter } from "../protocol";
import { asToml, shown, type Table } from "../scenario";
import { set } from "../state";
import { TextField } from "./field";

interface Props {
  controller: Controller;
  /** The parameters that the text sets. */
  values: Table;
  /** The key of the table of parameters. */
  base: string;
}

export function Parameters({ controller, values, base }: Props) {
  if (controller.parameters.length === 0) return null;
  const changed = controller.parameters.filter(({ name }) => values[name] !== undefined).length;
  return (
    <details class="parameters">
      <summary>
        Parameters of {controller.name}
        {changed > 0 && ` (${changed} set)`}
      </summary>
      <div class="grid">
        {controller.parameters.map((parameter) => (
          <ParameterField
            key={parameter.name}
            parameter={parameter}
            value={shown(values[parameter.name])}
            path={`${base}.${parameter.name}`}
          />
        ))}
      </div>
    </details>
  );
}

function ParameterField({ parameter, value, path }: { parameter: Parameter; value: string; path: string }) {
  const id = path.replaceAll(".", "-");
  const title = `${parameter.meaning} Expected: ${parameter.expected}. Default: ${parameter.default_text}.`;
  const choices =
    parameter.kind === "flag" ? ["true", "false"] : parameter.kind === "word" ? parameter.words : null;
  return (
    <>
      <label for={id} title={title}>
        {parameter.name}
        {parameter.unit ? ` (${parameter.unit})` : ""}
      </label>
      {choices === null ? (
        <TextField
          id={id}
          value={value}
          placeholder={parameter.default_text.replaceAll('"', "")}
          title={title}
          onSet={(text) => set(path, asToml(text))}
        />
      ) : (
        <select
          id={id}
          title={title}
          value={value}
          onChange={(event) => set(path, asToml(event.currentTarget.value))}
        >
          <option value="">{parameter.default_text.replaceAll('"', "")} (default)</option>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      )}
    </>
  );
}
