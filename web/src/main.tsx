/** Starts the page: the engine, the scenario of the address, and the interface. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { isDark } from "./colours";
import { App } from "./components/app";
import { closeMenus } from "./components/header";
import { onKey } from "./components/playbar";
import { Engine } from "./engine";
import { startClock } from "./playback";
import { PRESETS } from "./presets";
import { connect, notice, open, problem, text } from "./state";
import { fromFragment, holdsScenario } from "./url";

effect(() => {
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
});

const NO_SCENARIO =
  "The scenario in the address of this page is damaged or too long. The page shows another scenario.";

async function main(): Promise<void> {
  const shared = await fromFragment(location.hash);
  text.value = shared ?? PRESETS[0]?.toml ?? "";
  const place = document.getElementById("app");
  if (place === null) return;
  render(<App />, place);
  startClock();
  addEventListener("keydown", onKey);
  addEventListener("keydown", closeMenus);
  addEventListener("click", closeMenus);
  addEventListener("hashchange", async () => {
    const changed = await fromFragment(location.hash);
    if (changed !== null && changed !== text.value) open(changed);
    if (changed === null && holdsScenario(location.hash)) notice.value = NO_SCENARIO;
  });
  try {
    await connect(await Engine.start());
    open(text.value);
    if (shared === null && holdsScenario(location.hash)) notice.value = NO_SCENARIO;
  } catch (error) {
    problem.value = `The simulator did not start: ${error instanceof Error ? error.message : String(error)}`;
  }
}

void main();
