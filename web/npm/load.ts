/** Loads the WebAssembly module. */

import init, { initSync } from "./narrows_web.js";

export const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;
let loaded: Promise<unknown> | undefined;

/** Loads the module. Wait for it before any other call except `run`. Further calls do nothing. */
export async function load(): Promise<void> {
  // After a failure, the next call tries again.
  loaded ??= start().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  await loaded;
}

async function start(): Promise<unknown> {
  const place = new URL("./narrows_web_bg.wasm", import.meta.url);
  if (!isNode) return init({ module_or_path: place });
  const { readFile } = await import("node:fs/promises");
  return initSync({ module: await readFile(place) });
}
