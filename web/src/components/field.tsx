/** A labelled value with a slider and a field. Both set the same key of the scenario. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { asToml } from "../scenario";
import { set } from "../state";

interface SliderProps {
  id: string;
  label: string;
  /** The dotted key that slider and field set. */
  path: string;
  /** The value as in the text of the scenario, or an empty string for the default. */
  value: string;
  /** The default, shown if `value` is empty. */
  fallback: string;
  range: [number, number];
  /** Sliders of rates and times have a logarithmic scale. */
  isLogarithmic?: boolean;
  /** The smallest value of a logarithmic slider stands for 0. */
  hasZero?: boolean;
  parse: (text: string) => number;
  write: (value: number) => string;
  title?: string;
  /** Words below the slider, from its lower to its upper end. */
  ends?: string[];
  /** Replaces the way to set the key. */
  onSet?: (text: string) => void;
}

const STEPS = 400;

export function SliderField(props: SliderProps) {
  const { id, label, path, value, fallback, range, parse, write, isLogarithmic, hasZero } = props;
  const given = parse(value === "" ? fallback : value);
  const [low, high] = range;
  // The engine gives some values in another unit than the text, e.g. 71200kbit for 71.2mbit.
  const usual = write(parse(value));
  const text = value !== "" && parse(usual) === parse(value) ? usual : value;
  const put = props.onSet ?? ((text: string) => set(path, asToml(text)));
  const position = Number.isNaN(given) ? 0 : Math.round(STEPS * share(given, low, high, isLogarithmic));
  // While the thumb moves, it stays where the reader holds it, although the text follows a little later.
  const [held, setHeld] = useState<number | null>(null);
  const move = (at: number) => {
    setHeld(at);
    if (hasZero && at === 0) return put(write(0));
    const part = at / STEPS;
    put(write(isLogarithmic ? low * (high / low) ** part : low + (high - low) * part));
  };
  return (
    <div class="field" title={props.title}>
      <label for={id}>{label}</label>
      <input
        type="range"
        min={0}
        max={STEPS}
        value={held ?? position}
        aria-label={`${label}, slider`}
        aria-valuetext={text || fallback}
        onInput={(event) => move(event.currentTarget.valueAsNumber)}
        onChange={() => setHeld(null)}
      />
      <TextField id={id} value={text} placeholder={fallback} onSet={put} />
      {props.ends !== undefined && (
        <span class="ends" aria-hidden="true">
          {props.ends.map((words) => (
            <span key={words}>{words}</span>
          ))}
        </span>
      )}
    </div>
  );
}

function share(value: number, low: number, high: number, isLogarithmic = false): number {
  const part = isLogarithmic
    ? Math.log(Math.max(value, low) / low) / Math.log(high / low)
    : (value - low) / (high - low);
  return Math.max(0, Math.min(1, part));
}

interface TextProps {
  id: string;
  value: string;
  placeholder: string;
  onSet: (text: string) => void;
  label?: string;
  title?: string;
}

/** A field that sets its value at Enter or when it loses the focus. */
export function TextField({ id, value, placeholder, onSet, label, title }: TextProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const finish = () => {
    if (draft !== null && draft !== value) onSet(draft);
    setDraft(null);
  };
  return (
    <input
      id={id}
      type="text"
      autocomplete="off"
      spellcheck={false}
      value={draft ?? value}
      placeholder={placeholder}
      aria-label={label}
      title={title}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onBlur={finish}
      onKeyDown={(event) => {
        if (event.key === "Enter") finish();
        if (event.key === "Escape") setDraft(null);
      }}
    />
  );
}

export function Row({ id, label, children }: { id?: string; label: string; children: ComponentChildren }) {
  return (
    <div class="field">
      {id === undefined ? <span>{label}</span> : <label for={id}>{label}</label>}
      <div class="wide">{children}</div>
    </div>
  );
}
