/** Reads the new rows of a simulation, for messages from a worker. */

/** Columns of equal length: numbers, or text. */
export type Columns = Record<string, Float64Array | string[]>;

interface Source {
  rows(table: string, from: number): Columns;
}

/** The rows of these tables that are new since the last call. `taken` keeps how many rows of each table were read. */
export function newRows(
  source: Source,
  tables: string[],
  taken: Record<string, number>,
): Record<string, Columns> {
  const found: Record<string, Columns> = {};
  for (const name of tables) {
    const from = taken[name] ?? 0;
    const columns = source.rows(name, from);
    const count = Object.values(columns)[0]?.length ?? 0;
    if (count === 0) continue;
    taken[name] = from + count;
    found[name] = columns;
  }
  return found;
}

/** The buffers of the columns of numbers. A message can transfer these buffers instead of copying them. */
export function buffersOf(tables: Columns[]): ArrayBuffer[] {
  return tables
    .flatMap((columns) => Object.values(columns))
    .filter((column) => column instanceof Float64Array)
    .map((column) => column.buffer as ArrayBuffer);
}
