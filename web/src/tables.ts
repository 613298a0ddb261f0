/** The tables of a run as `narrows run` writes them: the same columns, types and order of rows. */

import type { RunData, Series } from "./data";
import type { Column, Kind } from "./parquet";

export type TableName = "flows" | "links" | "flow_samples" | "link_samples";

/** Columns that are not floats, as in python/narrows/results/columns.py. */
const KINDS: Record<string, Kind> = {};
for (const [kind, names] of [
  ["u8", "state"],
  ["u32", "run flow link"],
  ["str", "name cc source from to"],
  [
    "u64",
    "size_bytes delivered_bytes sent_packets retransmits spurious timeouts sent_bytes signal_bytes " +
      "offered_packets dropped_packets random_losses marks drops",
  ],
] as const)
  for (const name of names.split(" ")) KINDS[name] = kind;

/** A table of all seeds of a run. */
export function tableOf(run: RunData, name: TableName): Column[] {
  const parts = run.seeds.map((seed) => {
    if (name === "flows") return rowsOf([...seed.flowRows].sort(byNumber).map(([, row]) => ({ ...row })));
    if (name === "links") return rowsOf([...seed.linkRows].sort(byNumber).map(([, row]) => ({ ...row })));
    return name === "flow_samples" ? samples(seed.flows, "flow") : samples(seed.links, "link");
  });
  const names = parts.find((part) => part.size > 0)?.keys() ?? [];
  const numbers = parts.map((part, seed) => new Array(length(part)).fill(run.firstRun + seed));
  const columns: Column[] = [{ name: "run", kind: "u32", values: numbers.flat() }];
  for (const column of names) {
    const values = parts.flatMap((part) => part.get(column) ?? []);
    columns.push({ name: column, kind: KINDS[column] ?? "float", values });
  }
  return columns;
}

type Values = Map<string, (number | string)[]>;

function length(part: Values): number {
  return part.values().next().value?.length ?? 0;
}

const byNumber = ([a]: [number, unknown], [b]: [number, unknown]) => a - b;

function rowsOf(rows: Record<string, number | string>[]): Values {
  const names = Object.keys(rows[0] ?? {});
  return new Map(names.map((name) => [name, rows.map((row) => row[name] ?? Number.NaN)]));
}

/** The samples of all flows or links in the order of time. The page keeps them by flow or link. */
function samples(parts: Map<number, Series>, key: string): Values {
  const order: { t: number; id: number; series: Series; row: number }[] = [];
  for (const [id, series] of parts)
    series.t_s?.forEach((t, row) => {
      order.push({ t, id, series, row });
    });
  order.sort((a, b) => a.t - b.t || a.id - b.id);
  const names = Object.keys(order[0]?.series ?? {});
  const result: Values = new Map();
  for (const name of names) {
    result.set(
      name,
      order.map(({ series, row }) => series[name]?.[row] ?? Number.NaN),
    );
    // As in the tables of `narrows run`, the number of the flow or link follows the time.
    if (name === "t_s")
      result.set(
        key,
        order.map(({ id }) => id),
      );
  }
  return result;
}
