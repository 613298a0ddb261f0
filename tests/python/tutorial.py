"""Runs a tutorial as its reader does.

All ```sh blocks of a page run in order in one shell, in an empty folder. A ```text block after a ```sh block
is the expected output of the commands. A comment applies to the next block:

- `<!-- file: NAME -->` saves the block to a file.
- `<!-- tested in: PATH -->` skips the block, because another test runs it.
- `<!-- output varies -->` allows different numbers in the output.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_MARK = "----- block {} -----"


@dataclass
class Step:
    """A block of commands, with the output that the page shows."""

    commands: str
    shown: str | None = None
    varies: bool = False


def steps(page: Path, folder: Path) -> list[Step]:
    """The page's steps in order. Saving a file is also a step."""
    found: list[Step] = []
    follows = False
    for number, block in enumerate(_BLOCK.finditer(page.read_text(encoding="utf-8"))):
        note, language, text = block["note"] or "", block["language"], block["text"]
        if note.startswith("file: "):
            saved = folder / f".block-{number}"
            saved.write_text(text, encoding="utf-8")
            found.append(Step(f"cp {saved} {note.removeprefix('file: ')}\n"))
        elif note.startswith("tested in: "):
            assert (ROOT / note.removeprefix("tested in: ")).exists(), note
        elif language == "sh":
            found.append(Step(text))
        elif language == "text" and follows:
            found[-1].shown, found[-1].varies = text, note == "output varies"
        elif language != "text":
            raise AssertionError(f"{page.name}: a block of {language} that is neither saved nor run")
        follows = language == "sh" and not note
    return found


def run(page: Path, folder: Path, environment: dict[str, str], finally_: str = "") -> list[tuple[Step, str]]:
    """Runs all steps. Returns each step with its output. The command `finally_` runs even after a failure."""
    taken = steps(page, folder)
    script = f"set -e\nshopt -s expand_aliases\ntrap {_quoted(finally_)} EXIT\n"
    for number, step in enumerate(taken):
        script += f"echo '{_MARK.format(number)}'\n{step.commands}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{page.name} stopped:\n{done.stdout}\n{done.stderr}"
    outputs = re.split(r"^----- block \d+ -----\n", done.stdout, flags=re.MULTILINE)[1:]
    return list(zip(taken, outputs, strict=True))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def compare(page: Path, results: list[tuple[Step, str]]) -> None:
    """Fails if the output of a step differs from the output on the page."""
    for step, said in results:
        if step.shown is not None:
            shown, real = (_masked(step.shown), _masked(said)) if step.varies else (step.shown, said)
            assert _trimmed(real) == _trimmed(shown), f"{page.name}, after:\n{step.commands}"


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def _masked(text: str) -> str:
    return re.sub(r" +", " ", re.sub(r"\d+(?:\.\d+)?|-(?= Mbit)", "N", text))
