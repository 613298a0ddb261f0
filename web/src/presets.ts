/** The scenarios that the page offers. The first comment line of a file is its title, the second says what to look for. */

import fiveG from "../presets/5g.toml";
import bbrDeep from "../presets/bbr-deep-buffer.toml";
import bbrShallow from "../presets/bbr-shallow-buffer.toml";
import brfNewcomers from "../presets/brf-newcomers.toml";
import bufferbloat from "../presets/bufferbloat.toml";
import dctcpMarking from "../presets/dctcp-marking.toml";
import incast from "../presets/incast.toml";
import randomLoss from "../presets/random-loss.toml";
import rttUnfairness from "../presets/rtt-unfairness.toml";
import twoFlows from "../presets/two-flows.toml";

export interface Preset {
  title: string;
  note: string;
  toml: string;
}

export const PRESETS: Preset[] = [
  twoFlows,
  bufferbloat,
  rttUnfairness,
  bbrDeep,
  bbrShallow,
  randomLoss,
  fiveG,
  incast,
  dctcpMarking,
  brfNewcomers,
].map((toml) => ({ ...heading(toml), toml }));

/** The title and the note in the comments at the head of a scenario. */
export function heading(toml: string): { title: string; note: string } {
  const [first = "", second = ""] = toml.split("\n");
  const comment = (line: string) => (line.startsWith("#") ? line.slice(1).trim() : "");
  return { title: comment(first), note: comment(first) ? comment(second) : "" };
}
