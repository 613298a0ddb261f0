import assert from "node:assert/strict";
import { test } from "node:test";
import { lzma } from "../compress.mjs";
import { decodeLzma } from "../src/lzma";

/** Bytes that are neither constant nor incompressible, the same in each run. */
function bytes(length: number, kinds: number): Uint8Array {
  let state = 12345;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 16) % kinds;
  });
}

const words = (length: number) => {
  const noise = bytes(length, 7);
  return new TextEncoder().encode(
    Array.from(noise, (n) => ["queue", "flow ", "rate=", "bbr", "\n"][n] ?? `${n}`).join(""),
  );
};

test("data is the same after compression and decompression", () => {
  const cases = [
    new Uint8Array(0),
    bytes(1, 256),
    new Uint8Array(5000),
    bytes(3000, 256),
    bytes(70_000, 3),
    words(40_000),
    // Repeats at distances that need all kinds of distance codes.
    Uint8Array.from([
      ...words(3000),
      ...bytes(60_000, 256),
      ...words(3000),
      ...bytes(200, 256),
      ...words(3000),
    ]),
  ];
  for (const data of cases) assert.deepEqual(decodeLzma(lzma(data)), data);
});

test("damaged data is refused, or gives other data", () => {
  const data = words(5000);
  const damaged = Uint8Array.from(lzma(data));
  damaged[200] = (damaged[200] as number) ^ 0x55;
  let result: Uint8Array | null = null;
  try {
    result = decodeLzma(damaged);
  } catch {
    // The expected way to report damage.
  }
  assert.notDeepEqual(result, data);
});
