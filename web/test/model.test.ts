import assert from "node:assert/strict";
import { test } from "node:test";
import { cubicCurve, phasesOf } from "../src/charts/controller-state";
import { type FlowRow, RunData, rateAt, rises, startOrder } from "../src/data";
import { layout, limitPackets } from "../src/model";
import { COURSE, heading, PRESETS } from "../src/presets";
import type { FlowInfo, LinkInfo, Network } from "../src/protocol";
import { areApart, resultRows } from "../src/results";
import { asToml, newFlow, queueToml, queueValue } from "../src/scenario";

function network(
  links: [number, number][],
  flows: [from: number, to: number, path: number[], start: number][],
) {
  return {
    nodes: ["a", "b", "c", "d", "e", "f"],
    links: links.map(
      ([from, to], i): LinkInfo => ({
        name: `l${i}`,
        from,
        to,
        rates_bps: [[0, 1e6]],
        delay_s: 0.01,
        queue: { kind: "fifo", limit: { packets: null, bytes: 15_000 } },
      }),
    ),
    flows: flows.map(
      ([from, to, path, start_s], entry): FlowInfo => ({
        name: `f${entry}`,
        cc: "cubic",
        entry,
        from,
        to,
        start_s,
        count: entry === 0 ? 2 : 1,
        path,
      }),
    ),
  } as unknown as Network;
}

// Two senders (0, 1), two switches (2, 3), two receivers (4, 5).
const DUMBBELL = network(
  [
    [0, 2],
    [1, 2],
    [2, 3],
    [3, 4],
    [3, 5],
  ],
  [
    [0, 4, [0, 2, 3], 5],
    [1, 5, [1, 2, 4], 1],
  ],
);

test("data goes from left to right", () => {
  const { places, columns } = layout(DUMBBELL);
  const column = (node: number) => places.get(node)?.column;
  assert.deepEqual([0, 1, 2, 3, 4, 5].map(column), [0, 0, 1, 2, 3, 3]);
  assert.equal(columns, 4);
  assert.notEqual(places.get(0)?.row, places.get(1)?.row);
});

test("flows in opposite directions have places, too", () => {
  const { places } = layout(
    network(
      [
        [0, 1],
        [1, 0],
      ],
      [
        [0, 1, [0], 0],
        [1, 0, [1], 0],
      ],
    ),
  );
  assert.notEqual(places.get(0)?.column, places.get(1)?.column);
});

test("flows are numbered in the order of their starts", () => {
  assert.deepEqual(startOrder(DUMBBELL), [1, 0, 0]);
});

test("a limit in bytes counts full packets", () => {
  assert.equal(limitPackets(DUMBBELL.links[0] as LinkInfo), 10);
});

test("a rate that changes has its value at a time", () => {
  const steps: [number, number][] = [
    [0, 1],
    [2, 5],
    [4, 3],
  ];
  assert.deepEqual(
    [0, 1.9, 2, 10].map((time) => rateAt(steps, time)),
    [1, 1, 5, 3],
  );
});

test("a queue keeps its keys, and its text is short where that is enough", () => {
  const written = (value: Parameters<typeof queueValue>[0]) => queueToml(queueValue(value));
  assert.equal(written("2bdp"), '"2bdp"');
  assert.equal(written({ kind: "fifo", limit: "2bdp" }), '"2bdp"');
  assert.equal(written("fq-codel"), '"fq-codel"');
  assert.equal(
    written({ kind: "threshold", limit: "400p", mark: 20 }),
    '{ kind = "threshold", mark = 20, limit = "400p" }',
  );
  assert.equal(written({ kind: "codel", ecn: true }), '{ kind = "codel", ecn = true }');
});

test("fields hold text, numbers and TOML", () => {
  assert.equal(asToml("20mbit"), '"20mbit"');
  assert.equal(asToml("0.5"), "0.5");
  assert.equal(asToml(" true "), "true");
  assert.equal(asToml('{ rate = "1mbit" }'), '{ rate = "1mbit" }');
  assert.equal(asToml(""), "");
});

test("a new flow in a network of links has ends", () => {
  const description = (topology: object) =>
    ({ set: { topology, flows: [{ from: "x", to: "y" }] }, network: { duration_s: 20 } }) as never;
  assert.equal(newFlow(description({ kind: "dumbbell" }), "bbr"), 'cc = "bbr"\nstart = "2s"');
  assert.match(newFlow(description({ name: "abilene" }), "bbr"), /from = "x"\nto = "y"/);
});

test("BBR's phases follow from its variable", () => {
  const series = { t_s: [1, 2, 3, 4, 5], value: [0, 0, 1, 2, 2] };
  assert.deepEqual(phasesOf(new Map([["phase", series]])), [
    { name: "Startup", from: 1, to: 3 },
    { name: "Drain", from: 3, to: 4 },
    { name: "ProbeBW", from: 4, to: 5 },
  ]);
});

test("CUBIC's curve is at W_max after K", () => {
  const t_s = [0, 1, 2, 3, 4];
  const curve = cubicCurve(
    new Map([
      ["w_max", { t_s, value: [100, 100, 100, 100, 100] }],
      ["k", { t_s, value: [0, 2, 2, 2, 2] }],
    ]),
  );
  assert.ok(Number.isNaN(curve?.y[0]));
  assert.equal(curve?.y[3], 100);
  assert.ok((curve?.y[2] as number) < 100 && (curve?.y[4] as number) > 100);
});

test("every preset has a title and a note", () => {
  assert.ok(PRESETS.length >= 8);
  for (const { title, note } of PRESETS) assert.ok(title.length > 2 && /[.?]$/.test(note), title);
  assert.deepEqual(heading('duration = "1s"'), { title: "", note: "" });
});

test("a tick stands at each sample whose counter has risen", () => {
  const series = { t_s: [1, 2, 3, 4, 5], retransmits: [0, 2, 2, 2, 3] };
  assert.deepEqual(rises(series, "retransmits"), [2, 5]);
  assert.deepEqual(rises({ t_s: [1, 2], drops: [4, 4] }, "drops"), [1]);
  assert.deepEqual(rises(series, "unknown"), []);
  assert.deepEqual(rises(undefined, "drops"), []);
});

test("the course has ten experiments, each with a title and a note", () => {
  assert.deepEqual(
    COURSE.map(({ title }) => Number.parseInt(title, 10)),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  for (const { title, note } of COURSE) assert.match(note, /[.?]$/, title);
});

test("flows of several seeds are matched by name, because random starts decide their numbers", () => {
  const run = new RunData(
    1,
    "",
    network(
      [[0, 1]],
      [
        [0, 1, [0], 0],
        [0, 1, [0], 0],
      ],
    ),
    null,
    2,
  );
  const started = (names: string[]) => ({
    flow: Float64Array.from(names.keys()),
    name: names,
    source: names.map((name) => name.slice(0, 2)),
  });
  const message = { type: "progress" as const, run: 1, now: 1, events: 1, complete: false, packets: null };
  const rest = { ...message, packetsAreCut: false, tables: {} };
  run.take({ ...rest, seed: 0, started: started(["f1", "f0-1", "f0-2"]) });
  run.take({ ...rest, seed: 1, started: started(["f0-1", "f1", "f0-2"]) });
  const [first, second] = run.seeds as [(typeof run.seeds)[0], (typeof run.seeds)[0]];
  // The goodput of each flow is its number in the seed.
  for (const seed of run.seeds) {
    for (const flow of [0, 1, 2]) seed.flows.set(flow, { goodput_bps: [flow] });
  }
  const numbers = (seed: (typeof run.seeds)[0]) =>
    [0, 1, 2].map((flow) => run.seriesIn(seed, flow)?.goodput_bps?.[0]);
  assert.deepEqual(numbers(second), [1, 0, 2]);
  assert.deepEqual(numbers(first), [0, 1, 2]);
  assert.deepEqual(
    [0, 1, 2].map((flow) => run.groupOf(flow)),
    [1, 0, 0],
  );
  assert.deepEqual(run.sorted([0, 1, 2]), [1, 2, 0], "in the order of the scenario's entries");
});

test("a flow that another seed does not have is not averaged with a flow of the same number", () => {
  const run = new RunData(1, "", network([[0, 1]], [[0, 1, [0], 0]]), null, 2);
  const common = { type: "progress" as const, run: 1, now: 1, events: 1, complete: true, packets: null };
  const flow = (name: string, goodput: number, start: number, end: number) => ({
    started: { flow: Float64Array.of(0), name: [name], source: ["f0"] },
    tables: {
      flows: {
        flow: Float64Array.of(0),
        name: [name],
        source: ["f0"],
        goodput_bps: Float64Array.of(goodput),
        start_s: Float64Array.of(start),
        end_s: Float64Array.of(end),
      },
    },
  });
  run.take({ ...common, packetsAreCut: false, seed: 0, ...flow("f0.8", 1e6, 0, 10) });
  run.take({ ...common, packetsAreCut: false, seed: 1, ...flow("f0.9", 5e6, 0, 10) });
  assert.equal(run.rowIn(run.seeds[1] as (typeof run.seeds)[0], 0), undefined);
  assert.deepEqual(resultRows(run)[0]?.goodput, { mean: 1, low: 1, high: 1 });
});

test("flows that start or end at different times are apart", () => {
  const at = (times: [number, number][]) => {
    const base = network([[0, 1]], [[0, 1, [0], 0]]);
    const run = new RunData(1, "", { ...base, duration_s: 20, warmup_s: 2 }, null, 1);
    times.forEach(([start_s, end_s], flow) => {
      run.first.flowRows.set(flow, { flow, goodput_bps: 1e6, start_s, end_s } as FlowRow);
    });
    return areApart(run);
  };
  assert.equal(at([]), false);
  assert.equal(
    at([
      [0, Number.NaN],
      [1.5, Number.NaN],
    ]),
    false,
    "both are measured from the warm-up on",
  );
  assert.equal(
    at([
      [0, Number.NaN],
      [8, Number.NaN],
    ]),
    true,
  );
  assert.equal(
    at([
      [0, Number.NaN],
      [0, 12],
    ]),
    true,
  );
});
