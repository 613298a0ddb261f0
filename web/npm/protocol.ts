/** The messages between `run` and its worker. */

import type { Outcome, Progress } from "./index.js";

export interface Request {
  scenario: string;
  point: number | undefined;
  seed: number | undefined;
  watched: number | undefined;
  tables: string[] | undefined;
  speed: number | undefined;
}

export type Answer =
  | { type: "progress"; progress: Progress }
  | { type: "outcome"; outcome: Outcome }
  | { type: "error"; message: string };
