/** Bundles the unit tests and runs them with Node's test runner. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const root = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), "narrows-web-"));
const tests = readdirSync(join(root, "test")).filter((name) => name.endsWith(".test.ts"));
// What modules ask a browser for when they are loaded: the reader's preferences.
const browser = `
  globalThis.matchMedia ??= () => ({ matches: false, addEventListener() {} });
  globalThis.localStorage ??= { getItem: () => null, setItem() {} };
  globalThis.document ??= { documentElement: { dataset: {} } };
`;
await build({
  entryPoints: tests.map((name) => join(root, "test", name)),
  outdir: folder,
  bundle: true,
  platform: "node",
  format: "esm",
  banner: { js: browser },
  outExtension: { ".js": ".mjs" },
  loader: { ".toml": "text" },
  jsx: "automatic",
  jsxImportSource: "preact",
});
const files = tests.map((name) => join(folder, name.replace(/ts$/, "mjs")));
const { status } = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" });
rmSync(folder, { recursive: true });
process.exit(status ?? 1);
