/** The text of the scenario, with the error of the command line at its line. */

import { useEffect, useRef } from "preact/hooks";
import { lineOf } from "../place";
import { notice, problem, text, write } from "../state";

/** Time without typing after which the text is checked and run, in ms. */
const PATIENCE_MS = 300;

export function Editor() {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const lines = text.value.split("\n").length;
  const wrong = problem.value === "" ? 0 : lineOf(text.value, problem.value);
  useEffect(() => {
    // The browser keeps the cursor while the reader types; a change by a control replaces the text.
    if (area.current !== null && area.current.value !== text.value) area.current.value = text.value;
  }, [text.value]);
  return (
    <div class="editor">
      <div class={`lines${wrong > 0 ? " has-error" : ""}`}>
        <div class="gutter" ref={gutter} aria-hidden="true">
          <div class="numbers">{Array.from({ length: lines }, (_, i) => i + 1).join("\n")}</div>
          {wrong > 0 && (
            <div class="wrong" style={{ top: `calc(6px + ${wrong - 1} * 18px)` }}>
              {wrong}
            </div>
          )}
        </div>
        <textarea
          id="toml"
          ref={area}
          aria-label="Scenario as TOML"
          aria-invalid={problem.value !== ""}
          aria-describedby="problem"
          spellcheck={false}
          autocapitalize="off"
          wrap="off"
          defaultValue={text.value}
          onInput={(event) => write(event.currentTarget.value, PATIENCE_MS)}
          onScroll={(event) => {
            if (gutter.current !== null) gutter.current.scrollTop = event.currentTarget.scrollTop;
          }}
        />
      </div>
    </div>
  );
}

/** A message about the address. */
export function Notice() {
  return (
    <div id="notice" class="problem" role="status" hidden={notice.value === ""}>
      {notice.value}
    </div>
  );
}

/** The error about the present text. The figures stay those of the last text without errors. */
export function Problem() {
  const wrong = problem.value === "" ? 0 : lineOf(text.value, problem.value);
  return (
    <div id="problem" class="problem" role="alert" hidden={problem.value === ""}>
      {problem.value}
      {wrong > 0 && (
        <button type="button" onClick={() => showLine(wrong)}>
          Line {wrong}
        </button>
      )}
    </div>
  );
}

function showLine(line: number): void {
  const area = document.getElementById("toml");
  if (!(area instanceof HTMLTextAreaElement)) return;
  const starts = [0];
  for (let at = area.value.indexOf("\n"); at >= 0; at = area.value.indexOf("\n", at + 1)) starts.push(at + 1);
  const from = starts[line - 1] ?? 0;
  area.scrollIntoView({ block: "nearest" });
  area.focus();
  area.setSelectionRange(from, (starts[line] ?? area.value.length + 1) - 1);
}
