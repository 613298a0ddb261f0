// Writes tables as Parquet with the writer of the page.
//
//   node parquet.mjs FOLDER < tables.json
//
// The input has a list of columns by the name of the file.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL("../../web", import.meta.url));
const { build } = createRequire(path.join(web, "package.json"))("esbuild");
const { outputFiles } = await build({
  entryPoints: [path.join(web, "src/parquet.ts")],
  bundle: true,
  write: false,
  format: "esm",
});
const { parquet } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

for (const [name, columns] of Object.entries(JSON.parse(fs.readFileSync(0, "utf8")))) {
  fs.writeFileSync(path.join(process.argv[2], `${name}.parquet`), await parquet(columns, "test"));
}
