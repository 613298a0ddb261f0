/** The head of the page: presets, sharing, downloads and the theme. */

import { useState } from "preact/hooks";
import { isDark, switchTheme } from "../colours";
import { saveFigures, saveFlowSamples, saveLinkSamples, saveNetwork, saveParquet, saveToml } from "../files";
import { COURSE, heading, PRESETS } from "../presets";
import { open, text, version } from "../state";

export function Header() {
  const current = heading(text.value);
  const isKnown = [...PRESETS, ...COURSE].some(({ title }) => title === current.title);
  return (
    <header>
      <div class="bar">
        <h1>
          Narrows <span>playground</span>
        </h1>
        <div class="tools">
          <Share />
          <Downloads />
          <RunElsewhere />
          <button
            type="button"
            id="theme"
            aria-pressed={isDark.value}
            title="Switch between the light and the dark theme"
            onClick={switchTheme}
          >
            {isDark.value ? "Light" : "Dark"}
          </button>
        </div>
      </div>
      <nav class="presets" aria-label="Presets">
        {PRESETS.map((preset) => (
          <button
            type="button"
            key={preset.title}
            class="preset"
            aria-pressed={preset.title === current.title}
            onClick={() => open(preset.toml)}
          >
            {preset.title}
          </button>
        ))}
        <Course title={current.title} />
      </nav>
      {isKnown && <p class="about">{current.note}</p>}
    </header>
  );
}

/** The experiments of the course. The selected experiment stays selected until the text has another title. */
function Course({ title }: { title: string }) {
  const shown = COURSE.findIndex((preset) => preset.title === title);
  return (
    <select
      id="course"
      aria-label="Experiments of the course"
      value={shown}
      onChange={({ currentTarget }) => {
        const preset = COURSE[Number(currentTarget.value)];
        if (preset !== undefined) open(preset.toml);
        else currentTarget.value = String(shown);
      }}
    >
      <option value={-1}>Course: ten experiments</option>
      {COURSE.map((preset, i) => (
        <option key={preset.title} value={i}>
          {preset.title}
        </option>
      ))}
    </select>
  );
}

function Share() {
  const [done, setDone] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      setDone("Copied");
    } catch {
      setDone("Not copied: copy it from the address bar");
    }
    setTimeout(() => setDone(""), 2500);
  };
  return (
    <button type="button" id="share" title="The address of this page contains the scenario" onClick={copy}>
      {done || "Copy link"}
    </button>
  );
}

function Downloads() {
  const files: [string, () => void][] = [
    ["Scenario (TOML)", saveToml],
    ["Samples of flows (CSV)", saveFlowSamples],
    ["Samples of links (CSV)", saveLinkSamples],
    ["Results of flows (Parquet)", () => void saveParquet("flows")],
    ["Results of links (Parquet)", () => void saveParquet("links")],
    ["Samples of flows (Parquet)", () => void saveParquet("flow_samples")],
    ["Samples of links (Parquet)", () => void saveParquet("link_samples")],
    ["Figures (SVG)", saveFigures],
    ["Network (SVG)", saveNetwork],
  ];
  return (
    <details class="menu">
      <summary id="download">Download</summary>
      <div class="items">
        {files.map(([label, save]) => (
          <button type="button" key={label} onClick={save}>
            {label}
          </button>
        ))}
      </div>
    </details>
  );
}

function RunElsewhere() {
  return (
    <details class="menu">
      <summary id="run-elsewhere">Run on your machine</summary>
      <div class="items text">
        <p>Install Narrows {version.value} from its release, and download the scenario. Then run:</p>
        <pre>
          <code>narrows run scenario.toml</code>
        </pre>
        <p>
          The results equal those of this page bit for bit. To run the same file on real TCP stacks, as root:
        </p>
        <pre>
          <code>narrows run scenario.toml --on kernel</code>
        </pre>
        <button type="button" onClick={saveToml}>
          Download scenario.toml
        </button>
      </div>
    </details>
  );
}

/** Closes an open menu when the reader clicks elsewhere or presses Escape. */
export function closeMenus(event: Event): void {
  if (event instanceof KeyboardEvent && event.key !== "Escape") return;
  for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")) {
    if (event instanceof KeyboardEvent || !menu.contains(event.target as Node)) menu.open = false;
  }
}
