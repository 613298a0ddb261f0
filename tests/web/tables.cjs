// Simulates a scenario in the browser's engine, and prints all tables as JSON. Floats are 16 hexadecimal digits.
//
//   node tables.cjs ENGINE_FOLDER STEPS [POINT] < scenario.toml
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [folder, steps, point] = process.argv.slice(2);
const script = fs.readFileSync(path.join(folder, "narrows_web.js"), "utf8");
vm.runInThisContext(`${script}\nglobalThis.engine = wasm_bindgen;`);
engine.initSync({ module: fs.readFileSync(path.join(folder, "narrows_web_bg.wasm")) });

const hex = (value) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
};

const simulation = new engine.Simulation(fs.readFileSync(0, "utf8"), Number(point ?? 0));
for (let step = 1; step <= Number(steps); step++) {
  simulation.advance((simulation.duration * step) / Number(steps));
}
const tables = {};
for (const name of ["flows", "flow_samples", "links", "link_samples", "signalling", "distributions", "events", "traces"]) {
  const rows = simulation.rows(name, 0);
  tables[name] = Object.fromEntries(
    Object.entries(rows).map(([column, values]) => [column, Array.from(values, (v) => (typeof v === "string" ? v : hex(v)))]),
  );
}
process.stdout.write(JSON.stringify({ events: simulation.events, tables }));
