import assert from "node:assert/strict";
import { test } from "node:test";
import * as f from "../src/format";

test("rates are read and written as in scenario files", () => {
  for (const [text, bps] of [
    ["20mbit", 20e6],
    ["2.5Gbit/s", 2.5e9],
    ["100Mbps", 100e6],
    ["500 kbit", 5e5],
  ] as const) {
    assert.equal(f.parseRate(text), bps);
  }
  assert.ok(Number.isNaN(f.parseRate("20")));
  assert.ok(Number.isNaN(f.parseRate("fast")));
  assert.equal(f.writeRate(51_234_567), "51.2mbit");
  assert.equal(f.writeRate(1e9), "1gbit");
  assert.equal(f.writeRate(250_000), "250kbit");
});

test("times keep their value when they are written and read again", () => {
  for (const seconds of [0, 1e-4, 0.0305, 0.999, 1, 12.5, 90]) {
    assert.ok(Math.abs(f.parseTime(f.writeTime(seconds)) - seconds) <= seconds * 0.005);
  }
  assert.equal(f.writeTime(0.03), "30ms");
  assert.ok(Number.isNaN(f.parseTime("30")));
  assert.equal(f.parseTime(0), 0);
});

test("lengths of queues have packets, bytes, BDPs or no limit", () => {
  assert.deepEqual(f.parseLength("1.5bdp"), { amount: 1.5, unit: "bdp" });
  assert.deepEqual(f.parseLength("100p"), { amount: 100, unit: "p" });
  assert.deepEqual(f.parseLength("64kB"), { amount: 64_000, unit: "bytes" });
  assert.equal(f.parseLength("infinite")?.unit, "infinite");
  assert.equal(f.parseLength("fq-codel"), null);
  assert.equal(f.writeLength(0.123456, "bdp"), "0.123bdp");
  assert.equal(f.writeLength(12.4, "p"), "12p");
  assert.equal(f.writeLength(64_000, "bytes"), "64kB");
});

test("probabilities are percentages", () => {
  assert.equal(f.parseProbability("0.1%"), 0.001);
  assert.equal(f.parseProbability(0.02), 0.02);
  assert.equal(f.writeProbability(0.015), "1.5%");
  assert.equal(f.writeProbability(0), "0");
});

test("figures have three digits, and undefined ones a dash", () => {
  assert.equal(f.figure(47.234), "47.2");
  assert.equal(f.figure(1234.5), "1235");
  assert.equal(f.figure(3_125_000), "3.13 M");
  assert.equal(f.figure(Number.NaN), "–");
  assert.equal(f.figure(undefined), "–");
  assert.equal(f.figure(0), "0");
});
