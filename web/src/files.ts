/** Files that the page offers for download. */

import { flowName, largest, linesOf, METRICS } from "./charts/lines";
import { zoom } from "./charts/plot";
import { figuresAsSvg } from "./charts/svg";
import { inks } from "./colours";
import type { RunData, SeedData, Series } from "./data";
import { parquet } from "./parquet";
import { run, text, version } from "./state";
import { ghosts as ghostRuns } from "./sweep";
import { type TableName, tableOf } from "./tables";

export function saveToml(): void {
  save("scenario.toml", text.value, "application/toml");
}

export function saveFlowSamples(): void {
  const current = run.value;
  if (current === null) return;
  save(
    "flow_samples.csv",
    samplesAsCsv(current, "flow", (flow, seed) => seed.names.get(flow)?.name ?? flowName(current, flow)),
    "text/csv",
  );
}

export function saveLinkSamples(): void {
  const current = run.value;
  if (current === null) return;
  const name = (link: number) => current.network.links[link]?.name ?? "";
  save("link_samples.csv", samplesAsCsv(current, "link", name), "text/csv");
}

/** The figures as SVG. */
export function saveFigures(): void {
  const current = run.value;
  if (current === null) return;
  const [from, to] = zoom.value ?? [0, current.network.duration_s];
  const panels = METRICS.map((metric) => {
    const ghosts = ghostRuns.value.flatMap((data) => linesOf(metric, data, true));
    const lines = [...ghosts, ...linesOf(metric, current, false)];
    return { title: `${metric.title} (${metric.unit})`, lines, most: largest(lines) };
  });
  save("figures.svg", figuresAsSvg(panels, from, to, inks.value.ink, inks.value.paper), "image/svg+xml");
}

/** The drawing of the network as SVG, with the styles that it has on the page. */
export function saveNetwork(): void {
  const drawing = document.getElementById("network");
  if (!(drawing instanceof SVGSVGElement)) return;
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [from, to] = [drawing.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    const kept = [
      "fill",
      "stroke",
      "stroke-width",
      "stroke-dasharray",
      "opacity",
      "font-size",
      "font-weight",
    ];
    to[i]?.setAttribute("style", kept.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
  });
  for (const target of copy.querySelectorAll(".link-target:not(.watched)")) target.remove();
  copy.setAttribute("font-family", "sans-serif");
  save("network.svg", new XMLSerializer().serializeToString(copy), "image/svg+xml");
}

/** Samples with the columns of the table of `narrows run`, and the name of the flow or link. */
export function samplesAsCsv(
  current: RunData,
  kind: "flow" | "link",
  name: (id: number, seed: SeedData) => string,
): string {
  const columns = new Set<string>();
  const parts: { seed: number; id: number; label: string; series: Series }[] = [];
  current.seeds.forEach((seed, i) => {
    for (const [id, series] of kind === "flow" ? seed.flows : seed.links) {
      parts.push({ seed: i, id, label: name(id, seed), series });
      for (const column of Object.keys(series)) columns.add(column);
    }
  });
  const names = [...columns];
  const lines = [["run", kind, "name", ...names].join(",")];
  for (const { seed, id, label, series } of parts) {
    const quoted = /[",\n]/.test(label) ? JSON.stringify(label) : label;
    (series.t_s ?? []).forEach((_, i) => {
      const values = names.map((column) => {
        const value = series[column]?.[i];
        return value === undefined || Number.isNaN(value) ? "nan" : String(value);
      });
      lines.push([current.firstRun + seed, id, quoted, ...values].join(","));
    });
  }
  return `${lines.join("\n")}\n`;
}

/** A table of the run as Parquet, with the name, columns and types of the file of `narrows run`. */
export async function saveParquet(name: TableName): Promise<void> {
  const current = run.value;
  if (current === null) return;
  const content = await parquet(tableOf(current, name), `narrows ${version.value}`);
  save(`${name}.parquet`, content, "application/vnd.apache.parquet");
}

function save(name: string, content: string | Uint8Array<ArrayBuffer>, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
