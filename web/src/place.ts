/** Finds the line of a key in the text of a scenario, so that an error appears beside it. */

/** The key at which an error points, e.g. `topology.rate` in `scenario.toml: topology.rate: found ...`. */
export function keyOf(message: string): string {
  const match = /^scenario\.toml: ([\w*."-]+(?:\.[\w*"-]+)*): /.exec(message);
  return match?.[1] ?? "";
}

/** The line at which an error points, from 1, or 0 if it is unknown. */
export function lineOf(text: string, message: string): number {
  const stated = /\bline (\d+)/.exec(message);
  if (stated) return Number(stated[1]);
  const key = keyOf(message);
  return key === "" ? 0 : lineOfKey(text, key.split("."));
}

function lineOfKey(text: string, wanted: string[]): number {
  const counts = new Map<string, number>();
  let table: string[] = [];
  let best = { depth: 0, line: 0 };
  /** The path of a header. The name of a list means its last entry, e.g. `flows.app` means `flows.2.app`. */
  const pathOf = (parts: string[]): string[] => {
    const path: string[] = [];
    for (const part of parts) {
      path.push(part);
      const number = counts.get(path.join("."));
      if (number !== undefined) path.push(String(number - 1));
    }
    return path;
  };
  const consider = (path: string[], line: number) => {
    let depth = 0;
    while (depth < path.length && depth < wanted.length && path[depth] === wanted[depth]) depth++;
    if (depth === path.length && depth > best.depth) best = { depth, line };
  };
  text.split("\n").forEach((content, index) => {
    const list = /^\s*\[\[\s*([\w.-]+)\s*\]\]/.exec(content);
    const single = /^\s*\[\s*([\w.-]+)\s*\]/.exec(content);
    const pair = /^\s*([\w."-]+)\s*=/.exec(content);
    if (list) {
      const parts = (list[1] as string).split(".");
      const name = [...pathOf(parts.slice(0, -1)), ...parts.slice(-1)].join(".");
      counts.set(name, (counts.get(name) ?? 0) + 1);
      table = pathOf(parts);
      consider(table, index + 1);
    } else if (single) {
      table = pathOf((single[1] as string).split("."));
      consider(table, index + 1);
    } else if (pair) {
      consider([...table, ...(pair[1] as string).replaceAll('"', "").split(".")], index + 1);
    }
  });
  return best.line;
}
