import assert from "node:assert/strict";
import { test } from "node:test";
import { waiting } from "../src/model";
import { Fate, PacketLog } from "../src/packets";

/** Rows of the engine: time, whether the packet is at the end of the link, flow, sequence number, mark. */
function columns(rows: [number, 0 | 1, number, number, 0 | 1][]) {
  const column = (index: number) => Float64Array.from(rows, (row) => row[index] as number);
  return {
    t_s: column(0),
    through: column(1),
    flow: column(2),
    seq: column(3),
    bytes: Float64Array.from(rows, () => 1500),
    marked: column(4),
  };
}

function log(): PacketLog {
  const log = new PacketLog();
  log.configure(1, () => 12_000); // a packet takes a second, and the delay is a second
  return log;
}

test("a packet that a later one of its flow overtakes is gone", () => {
  const packets = log();
  packets.take(
    columns([
      [0, 0, 7, 1, 0],
      [0.1, 0, 7, 2, 0],
      [0.2, 0, 7, 3, 0],
      [0.3, 0, 8, 1, 0],
      [2, 1, 7, 1, 0],
      [3, 1, 7, 3, 1],
    ]),
  );
  assert.deepEqual(packets.fate, [Fate.Through, Fate.Gone, Fate.Through, Fate.Waiting]);
  assert.deepEqual(packets.left, [1, Number.NaN, 2, Number.NaN]);
  assert.deepEqual(packets.marked, [false, false, true, false]);
});

test("a retransmission is another packet than the lost one", () => {
  const packets = log();
  packets.take(
    columns([
      [0, 0, 1, 5, 0],
      [0.1, 0, 1, 6, 0],
      [2, 1, 1, 6, 0],
      [3, 0, 1, 5, 0],
      [5, 1, 1, 5, 0],
    ]),
  );
  assert.deepEqual(packets.fate, [Fate.Gone, Fate.Through, Fate.Through]);
});

test("packets wait from their arrival until their transmission begins", () => {
  const packets = log();
  packets.take(
    columns([
      [0, 0, 1, 1, 0],
      [0, 0, 1, 2, 0],
      [0, 0, 2, 1, 0],
      [2, 1, 1, 1, 0],
      [3, 1, 1, 2, 0],
      [4, 1, 2, 1, 0],
    ]),
  );
  assert.deepEqual(waiting(packets, 0.5), [1, 2]);
  assert.deepEqual(waiting(packets, 1.5), [2]);
  assert.deepEqual(waiting(packets, 2.5), []);
});

test("of packets without a fate, the sampled number waits", () => {
  const packets = log();
  packets.take(
    columns([
      [0, 0, 1, 1, 0],
      [0.1, 0, 1, 2, 0],
      [0.2, 0, 1, 3, 0],
    ]),
  );
  assert.deepEqual(waiting(packets, 1, 2), [1, 2]);
  assert.deepEqual(waiting(packets, 1), []);
});
