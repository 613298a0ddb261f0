/** The layout of the page: the network and its controls on the left, the figures on the right. */

import { type Compare, compare, pinned, previous, swap, togglePin } from "../state";
import { pointRuns } from "../sweep";
import { Controls } from "./controls";
import { Editor, Notice, Problem } from "./editor";
import { Figures } from "./figures";
import { Header } from "./header";
import { NetworkDrawing } from "./network";
import { PacketView } from "./packets";
import { Playbar } from "./playbar";
import { Results } from "./results";
import { SweepBar } from "./sweep";

export function App() {
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("figures")?.focus()}>
        Skip to the figures
      </button>
      <Header />
      <Problem />
      <Notice />
      <main>
        <section class="setup" aria-label="Scenario">
          <div class="card drawing">
            <NetworkDrawing />
            <PacketView />
          </div>
          <div class="card inputs">
            <Controls />
            <section class="toml" aria-labelledby="toml-title">
              <h2 id="toml-title">Scenario (TOML)</h2>
              <Editor />
              <p class="note">The controls change this text, and the text changes the controls.</p>
            </section>
          </div>
        </section>
        <section class="card output" id="figures" aria-label="Results" tabIndex={-1}>
          <Playbar />
          <SweepBar />
          <CompareBar />
          <Figures />
          <Results />
        </section>
      </main>
    </>
  );
}

const COMPARISONS: [Compare, string][] = [
  ["ghost", "as faint lines"],
  ["side", "side by side"],
  ["none", "not shown"],
];

/** What the present run is compared with. */
function CompareBar() {
  const hasPoints = pointRuns.value.length > 1;
  const hasOther = pinned.value !== null || previous.value !== null;
  return (
    <fieldset class="compare" aria-label="Comparison">
      <label for="compare">
        {hasPoints && compare.value !== "side"
          ? "Other points"
          : pinned.value === null
            ? "Previous run"
            : "Kept run"}
      </label>
      <select
        id="compare"
        value={compare.value}
        onChange={(event) => {
          compare.value = event.currentTarget.value as Compare;
        }}
      >
        {COMPARISONS.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      <button
        type="button"
        id="pin"
        aria-pressed={pinned.value !== null}
        title="Compare all further runs with this one"
        onClick={togglePin}
      >
        {pinned.value === null ? "Keep this run" : "Release the kept run"}
      </button>
      <button type="button" id="swap" disabled={!hasOther} title="Edit the other scenario" onClick={swap}>
        Swap
      </button>
    </fieldset>
  );
}
