/**
 * Builds the page as one file.
 *
 *     node build.mjs [ENGINE [OUTPUT]]
 *
 * ENGINE is the folder with the engine (default: ../target/web/engine), OUTPUT the page's file (default:
 * ../target/web/narrows-play.html). `tools/web.py` builds the engine and calls this program.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";
import { lzma } from "./compress.mjs";

const root = import.meta.dirname;
const [engine = join(root, "../target/web/engine"), output = join(root, "../target/web/narrows-play.html")] =
  process.argv.slice(2).map((path) => resolve(path));

/** Bundles a file with all its imports. */
async function bundle(entry) {
  const { outputFiles } = await build({
    entryPoints: [join(root, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    legalComments: "none",
    loader: { ".toml": "text" },
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  return outputFiles[0].text;
}

/** The licences of the libraries in the page. Their texts must accompany the libraries. */
async function licences() {
  const names = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];
  const texts = names.map(async (name) => {
    const text = await readFile(join(root, "node_modules", name, "LICENSE"), "utf8");
    return `${name}\n\n${text.trim().replaceAll("--", "- -")}`;
  });
  return (await Promise.all(texts)).join("\n\n");
}

/** Text in a <script> element ends at the first closing tag. */
function inScript(text) {
  return text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
}

const [page, style, worker, glue, module, template] = await Promise.all([
  bundle("src/main.tsx"),
  bundle("src/style.css"),
  bundle("src/worker.ts"),
  readFile(join(engine, "narrows_web.js"), "utf8"),
  readFile(join(engine, "narrows_web_bg.wasm")),
  readFile(join(root, "page.html"), "utf8"),
]);
// Names of the glue's functions do not matter, so that it can be minified like the page's own code.
const { code } = await transform(glue, { minify: true, target: "es2022" });
const parts = {
  style,
  worker: inScript(`${code}\n${worker}`),
  module: lzma(module).toString("base64"),
  page: inScript(page),
  licences: await licences(),
};
const html = template.replaceAll(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
await mkdir(dirname(output), { recursive: true });
await writeFile(output, html);
const own = gzipSync(page + style + worker, { level: 9 }).length;
console.log(`page without engine: ${(own / 1000).toFixed(1)} kB compressed`);
