/** The scenarios that the page offers. The first comment line of a file is its title, the second says what to look for. */

import reno from "../../scenarios/course/01-reno.toml";
import slowStart from "../../scenarios/course/02-slow-start.toml";
import cubic from "../../scenarios/course/03-cubic.toml";
import courseBufferbloat from "../../scenarios/course/04-bufferbloat.toml";
import rtt from "../../scenarios/course/05-rtt.toml";
import loss from "../../scenarios/course/06-loss.toml";
import bbr from "../../scenarios/course/07-bbr.toml";
import dctcp from "../../scenarios/course/08-dctcp.toml";
import courseIncast from "../../scenarios/course/09-incast.toml";
import rates from "../../scenarios/course/10-rates.toml";
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
].map(preset);

/** The experiments of the course "Congestion control in ten experiments". */
export const COURSE: Preset[] = [
  reno,
  slowStart,
  cubic,
  courseBufferbloat,
  rtt,
  loss,
  bbr,
  dctcp,
  courseIncast,
  rates,
].map(preset);

function preset(toml: string): Preset {
  return { ...heading(toml), toml };
}

/** The title and the note in the comments at the head of a scenario. */
export function heading(toml: string): { title: string; note: string } {
  const [first = "", second = ""] = toml.split("\n");
  const comment = (line: string) => (line.startsWith("#") ? line.slice(1).trim() : "");
  return { title: comment(first), note: comment(first) ? comment(second) : "" };
}
