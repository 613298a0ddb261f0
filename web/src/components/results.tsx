/** Results as tables, also for readers who do not see the figures. */

import { useState } from "preact/hooks";
import { flowName, METRICS } from "../charts/lines";
import { flowColour } from "../colours";
import type { RunData } from "../data";
import { figure } from "../format";
import { areApart, type Figure, linkResults, MOST_ROWS, resultRows } from "../results";
import { other, pinned, run, tick } from "../state";
import { PointTable } from "./sweep";

export function Results() {
  tick.value;
  const current = run.value;
  if (current === null) return null;
  return (
    <div class="results">
      <FlowTable current={current} against={other.value} />
      <LinkTable current={current} />
      <PointTable />
      <SampleTable current={current} />
    </div>
  );
}

function FlowTable({ current, against }: { current: RunData; against: RunData | null }) {
  tick.value; // new rows come without new properties
  const rows = resultRows(current);
  const before = new Map((against === null ? [] : resultRows(against)).map((row) => [row.name, row]));
  const hasFct = rows.some((row) => Number.isFinite(row.fct.mean));
  return (
    <div class="scroll">
      <table id="results">
        <caption>
          {current.complete ? "Results" : "Results so far"}
          {current.seeds.length > 1 && ` over ${current.seeds.length} seeds: mean (range)`}
        </caption>
        <thead>
          <tr>
            <th scope="col">Flow</th>
            <th scope="col">Controller</th>
            <th scope="col">Goodput (Mbit/s)</th>
            {against !== null && (
              <th scope="col">Goodput, {pinned.value === null ? "previous" : "kept"} run (Mbit/s)</th>
            )}
            <th scope="col">Mean RTT (ms)</th>
            <th scope="col">RTT, 95th percentile (ms)</th>
            <th scope="col">Retransmits</th>
            <th scope="col">Retransmits (% of sent packets)</th>
            <th scope="col">Timeouts</th>
            {hasFct && <th scope="col">FCT (ms)</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.flow}>
              <th scope="row">
                <i class="swatch" style={{ background: flowColour(current.network, row.group) }} />
                {row.name}
              </th>
              <td class="text">{row.cc}</td>
              <td class="goodput">
                <Value value={row.goodput} />
              </td>
              {against !== null && (
                <td class="before">
                  <Value value={before.get(row.name)?.goodput} />
                </td>
              )}
              <td>
                <Value value={row.rtt} />
              </td>
              <td>
                <Value value={row.rttP95} />
              </td>
              <td>
                <Value value={row.retransmits} />
              </td>
              <td>
                <Value value={row.lossShare} />
              </td>
              <td>
                <Value value={row.timeouts} />
              </td>
              {hasFct && (
                <td>
                  <Value value={row.fct} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {current.complete && current.network.warmup_s > 0 && (
        <p class="note">
          Goodput, RTT, utilisation and queue time omit the warm-up of {figure(current.network.warmup_s)} s.
          The other values include it.
        </p>
      )}
      {current.first.flowRows.size > MOST_ROWS && (
        <p class="note">
          The table shows {MOST_ROWS} of the {current.first.flowRows.size} flows of the first seed.
        </p>
      )}
      {areApart(current) && (
        <p class="note">
          Each goodput is a mean over the time in which the flow was active. Flows are active at different
          times, so the sum can exceed the rate of the link.
        </p>
      )}
    </div>
  );
}

function LinkTable({ current }: { current: RunData }) {
  tick.value;
  const rows = linkResults(current);
  if (rows.length === 0) return null;
  return (
    <div class="scroll">
      <table id="links">
        <caption>Bottleneck links</caption>
        <thead>
          <tr>
            <th scope="col">Link</th>
            <th scope="col">Utilisation (%)</th>
            <th scope="col">Mean time in queue (ms)</th>
            <th scope="col">Drops</th>
            <th scope="col">Marks</th>
            <th scope="col">Random losses</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              {[row.utilisation, row.queueing, row.drops, row.marks, row.losses].map((value, i) => (
                <td key={i}>
                  <Value value={value} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ value }: { value: Figure | undefined }) {
  if (value === undefined || !Number.isFinite(value.mean)) return <>–</>;
  return (
    <>
      {figure(value.mean)}
      {value.high > value.low && (
        <small>
          {" "}
          ({figure(value.low)} to {figure(value.high)})
        </small>
      )}
    </>
  );
}

/** Number of rows in the table of the figures' values. */
const ROWS = 20;

/** The values of the figures at equal distances in time. */
function SampleTable({ current }: { current: RunData }) {
  const [isOpen, setOpen] = useState(false);
  tick.value;
  const { first, network } = current;
  const flows = current.sorted(first.flows.keys()).slice(0, 8);
  const link = current.watched === null ? undefined : first.links.get(current.watched);
  const times = Array.from({ length: ROWS }, (_, i) => (network.duration_s * (i + 1)) / ROWS);
  const at = (series: Record<string, number[]> | undefined, column: string, time: number) => {
    const index = series?.t_s?.findLastIndex((t) => t <= time + 1e-9) ?? -1;
    return index < 0 ? undefined : series?.[column]?.[index];
  };
  const [goodput, window, rtt, queue] = METRICS;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The figures as a table</summary>
      {isOpen && (
        <div class="scroll">
          <table id="samples">
            <caption>Samples of the first seed</caption>
            <thead>
              <tr>
                <th scope="col">Time (s)</th>
                {flows.flatMap((flow) =>
                  [goodput, window, rtt].map((metric) => (
                    <th scope="col" key={`${flow}-${metric?.id}`}>
                      {flowName(current, flow)}: {metric?.title} ({metric?.unit})
                    </th>
                  )),
                )}
                <th scope="col">Queue (packets)</th>
              </tr>
            </thead>
            <tbody>
              {times
                .filter((time) => time <= first.now + 1e-9)
                .map((time) => (
                  <tr key={time}>
                    <th scope="row">{figure(time)}</th>
                    {flows.flatMap((flow) =>
                      [goodput, window, rtt].map((metric) => (
                        <td key={`${flow}-${metric?.id}`}>
                          {figure(
                            (at(first.flows.get(flow), metric?.column ?? "", time) ?? Number.NaN) *
                              (metric?.factor ?? 1),
                          )}
                        </td>
                      )),
                    )}
                    <td>{figure(at(link, queue?.column ?? "", time))}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
