/** Where the controls find their values in a description, and how they write them. */

import { toml } from "./format";
import type { Description, Json } from "./protocol";

export type Table = { [key: string]: Json };

export function table(value: Json | undefined): Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** A value as the reader would write it in a field. */
export function shown(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What a reader wrote in a field, as TOML: numbers, truth values, lists and tables stay; anything else is text. */
export function asToml(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || /^(?:true|false|[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[[{"'].*)$/i.test(trimmed))
    return trimmed;
  return toml(trimmed);
}

export interface LinkPlace {
  /** The key of the table that holds the link, e.g. `topology` or `links.2`. */
  base: string;
  set: Table;
  full: Table;
}

/** The table that sets the watched link: the topology, or an entry of `[[links]]`. */
export function linkPlace(description: Description, watchedName: string): LinkPlace {
  const { set, scenario } = description;
  const links = list(set.links).map((entry) => table(entry));
  const index = links.findIndex((entry) => {
    const [a, b] = list(entry.between);
    const names = [entry.name, `${entry.name}.back`, `${a}->${b}`, `${b}->${a}`];
    return names.includes(watchedName);
  });
  if (index >= 0 || set.topology === undefined) {
    const at = Math.max(index, 0);
    return { base: `links.${at}`, set: links[at] ?? {}, full: table(list(scenario.links)[at]) };
  }
  return { base: "topology", set: table(set.topology), full: table(scenario.topology) };
}

const QUEUES = ["fifo", "threshold", "red", "codel", "fq-codel", "priority", "htb"];

export interface QueueValue {
  kind: string;
  /** The length as written, or an empty string for the default. */
  limit: string;
  /** The other keys of the queue. */
  others: Table;
}

export function queueValue(value: Json | undefined): QueueValue {
  if (typeof value === "string") {
    return QUEUES.includes(value)
      ? { kind: value, limit: "", others: {} }
      : { kind: "fifo", limit: value, others: {} };
  }
  const { kind, limit, ...others } = table(value);
  return { kind: typeof kind === "string" ? kind : "fifo", limit: shown(limit), others };
}

/** The value of `queue` as TOML, in its shortest form. */
export function queueToml({ kind, limit, others }: QueueValue): string {
  const keys = Object.entries(others).filter(([, value]) => value !== null && value !== "");
  if (keys.length === 0 && kind === "fifo") return limit === "" ? "" : toml(limit);
  if (keys.length === 0 && limit === "") return toml(kind);
  const parts = [`kind = ${toml(kind)}`, ...keys.map(([key, value]) => `${key} = ${jsonAsToml(value)}`)];
  if (limit !== "") parts.push(`limit = ${toml(limit)}`);
  return `{ ${parts.join(", ")} }`;
}

function jsonAsToml(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(jsonAsToml).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{ ${Object.entries(value)
      .map(([key, inner]) => `${key} = ${jsonAsToml(inner)}`)
      .join(", ")} }`;
  }
  return toml(value ?? "");
}

/**
 * The keys of a new flow. Without a layout, it has the ends of the first flow. In a run of at least 8 s, it starts at
 * 2 s.
 */
export function newFlow(description: Description, cc: string): string {
  const flows = list(description.set.flows).map((entry) => table(entry));
  const lines = [`cc = ${toml(cc)}`];
  const first = flows[0];
  if (table(description.set.topology).kind === undefined && first !== undefined) {
    for (const key of ["from", "to"])
      if (typeof first[key] === "string") lines.push(`${key} = ${toml(first[key])}`);
  }
  const { duration_s } = description.network;
  const start = duration_s >= 8 ? "2s" : "";
  if (start !== "") lines.push(`start = ${toml(start)}`);
  return lines.join("\n");
}
