/** Colours of flows, the same in the drawing, the figures and the table: Okabe and Ito's palette, with a set for dark pages. */

import { computed, signal } from "@preact/signals";
import type { Network } from "./protocol";

export type Theme = "system" | "light" | "dark";

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b8558c", "#c98a00", "#3fa0d6", "#6a6a6a", "#8f8500"];
const DARK = ["#58aee8", "#ff8f4a", "#2fcb9a", "#e39ac4", "#f0b43c", "#9ad6ff", "#b8b8b8", "#f0e442"];
const INKS = {
  light: {
    ink: "#1c1e21",
    grey: "#667080",
    faint: "#dfe3e8",
    paper: "#ffffff",
    drop: "#c1121f",
    mark: "#8a5a00",
  },
  dark: {
    ink: "#e8e6e1",
    grey: "#98a2ad",
    faint: "#2c333b",
    paper: "#171a1e",
    drop: "#ff6b6b",
    mark: "#ffc95c",
  },
};
const KEY = "narrows-theme";

const system = signal(matchMedia("(prefers-color-scheme: dark)").matches);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  system.value = event.matches;
});

export const theme = signal<Theme>(stored());
export const isDark = computed(() => (theme.value === "system" ? system.value : theme.value === "dark"));
export const inks = computed(() => (isDark.value ? INKS.dark : INKS.light));

export function switchTheme(): void {
  theme.value = isDark.value ? "light" : "dark";
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // Some browsers refuse storage to pages from files. The choice then lasts until the page is closed.
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

/**
 * The number of a flow's colour and dash. If there are too many flows, all flows of an entry of `[[flows]]` share a
 * number, unless there is only one entry.
 */
export function colourIndex(network: Network, group: number): number {
  if (network.flows.length <= 2 * LIGHT.length) return group;
  const entry = network.flows[group]?.entry ?? 0;
  return network.flows.every((flow) => flow.entry === entry) ? group : entry;
}

export function colour(index: number): string {
  const palette = isDark.value ? DARK : LIGHT;
  return palette[index % palette.length] as string;
}

/** If there are more flows than colours, dashes distinguish the flows that share a colour. */
export function dash(index: number): number[] {
  return Math.floor(index / LIGHT.length) % 2 === 0 ? [] : [6, 3];
}

export function flowColour(network: Network, group: number): string {
  return colour(colourIndex(network, group));
}
