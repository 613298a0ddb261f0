import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, lineOf } from "../src/place";

const TEXT = `# A scenario
duration = "5s"

[topology]
kind = "dumbbell"
rate = "fast"
queue = { kind = "red", min = -1 }

[[flows]]
cc = "cubic"

[[flows]]
start = "1s"
cc = "bbb"

[sweep.vary]
"topology.rate" = []
`;

const line = (key: string) => lineOf(TEXT, `scenario.toml: ${key}: found x, expected y`);

test("an error points at the line of its key", () => {
  assert.equal(line("duration"), 2);
  assert.equal(line("topology.rate"), 6);
  assert.equal(line("flows.0.cc"), 10);
  assert.equal(line("flows.1.cc"), 14);
});

test("an error points into a table or a list of an entry", () => {
  const text = `[[flows]]
[flows.app]
kind = "video"

[[flows]]
[flows.app]
kind = "vidio"
[[flows.app.at]]
time = "1s"
[[flows.app.at]]
time = "-1s"
`;
  const at = (key: string) => lineOf(text, `scenario.toml: ${key}: found x, expected y`);
  assert.equal(at("flows.0.app.kind"), 3);
  assert.equal(at("flows.1.app.kind"), 7);
  assert.equal(at("flows.1.app.at.0.time"), 9);
  assert.equal(at("flows.1.app.at.1.time"), 11);
  assert.equal(at("flows.0.app.rate"), 2);
});

test("an error about a part of a value points at the value, and one about a missing key at its table", () => {
  assert.equal(line("topology.queue.min"), 7);
  assert.equal(line("topology.rtt"), 4);
  assert.equal(line("flows.1.count"), 12);
});

test("an error that states its line points there", () => {
  assert.equal(lineOf(TEXT, "scenario.toml: line 3: found no valid TOML"), 3);
});

test("an error without a key has no line", () => {
  assert.equal(keyOf("The page failed: x"), "");
  assert.equal(lineOf(TEXT, "The page failed: x"), 0);
});
