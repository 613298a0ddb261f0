"""What a validation leaves in its folder, so that an interrupted one goes on where it was.

OUT/scenarios/<algorithm>/<cell>.toml   what both sides run; `narrows run` takes it, too
OUT/sim/<algorithm>/<cell>              tables of the simulation
OUT/<backend>/<algorithm>/<cell>        tables of the runs on real stacks; <cell>.3 of those added to three
OUT/finished.jsonl                      when each of those was measured, on which kernel, and how long it took
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from narrows.errors import OutputError
from narrows.results.results import Results, came_to_its_end
from narrows.results.tables import cannot_write
from narrows.scenario.load import loads
from narrows.scenario.model import Scenario
from narrows.validate import grid
from narrows.validate.grid import Cell

SIMULATED = "sim"
"""Folder of the simulations."""
FINISHED = "finished.jsonl"


@dataclass(frozen=True)
class Place:
    """A cell for an algorithm."""

    out: Path
    algorithm: str
    cell: Cell
    duration: str

    @property
    def name(self) -> str:
        """Algorithm and cell in a word."""
        return f"{self.algorithm}/{self.cell.name}"

    def folder(self, side: str, first: int = 0) -> Path:
        """Of its results on a side; of those that `first` runs were before."""
        return self.out / side / self.algorithm / (f"{self.cell.name}.{first}" if first else self.cell.name)

    def scenario(self, runs: int, first: int = 0) -> Scenario:
        """What a side runs, from the file that it is written to; `first` runs were before."""
        path = self.out / "scenarios" / self.algorithm / f"{self.cell.name}.toml"
        text = grid.scenario(self.cell, self.algorithm, self.duration)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise cannot_write(path, error) from None
        return loads(text, str(path), {"sweep.seeds": runs, "seed": 1 + first})

    def parts(self, backend: str, kernel: str | None = None) -> Iterator[Results]:
        """What calls left of it, one after the other: each goes on where those before it ended.

        Args:
            backend: name of its folder.
            kernel: only what was measured on this one; None: on any.

        Yields:
            Runs of the very scenario that the cell has now.
        """
        first = 0
        while came_to_its_end(folder := self.folder(backend, first)):
            part = Results.read(folder)
            runs = len(part.runs)
            # Real sockets have had the buffer that is named now before it was.
            now = self.scenario(runs, first).full()
            before = {"receive_buffer": now["receive_buffer"]} | dict(part.metadata.get("scenario") or {})
            if before != now:
                return
            if kernel is not None and part.metadata.get("kernel") != kernel:
                return
            yield part
            first += runs

    def kept(self, backend: str, kernel: str | None) -> int:
        """Runs that need not be run again: of this scenario and kernel, and none of their part disturbed."""
        count = 0
        for part in self.parts(backend, kernel):
            if not all(verdict["sound"] for verdict in part.soundness.values()):
                break
            count += len(part.runs)
        return count

    def drop(self, backend: str, first: int) -> None:
        """Remove the parts that followed one which is now run again."""
        for later in self.folder(backend).parent.glob(f"{self.cell.name}.[0-9]*"):
            number = later.name.rpartition(".")[2]
            if not (number.isascii() and number.isdecimal()):
                continue  # not ours
            if int(number) > first:
                try:
                    shutil.rmtree(later)
                except OSError as error:
                    raise cannot_write(later, error) from None


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """No other call runs cells in this folder meanwhile: each would drop what the other measures.

    Raises:
        OutputError: if another does, or the folder cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        held = os.open(out, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(out, error) from None
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{out}: another run is writing there") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(held)


_lines = threading.Lock()


def note(place: Place, backend: str, kernel: str, runs: int, seconds: float) -> None:
    """Keep when a cell was measured, and how long that took."""
    entry = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": backend,
        "kernel": kernel,
        "algorithm": place.algorithm,
        "cell": place.cell.name,
        "runs": runs,
        "wall_s": round(seconds, 1),
    }
    path = place.out / FINISHED
    try:
        with _lines, path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
    except OSError as error:
        raise cannot_write(path, error) from None


def days(out: Path, backend: str, compared: Collection[tuple[str, str]]) -> list[str]:
    """First and last day (ISO 8601) on which these were measured, by algorithm and cell."""
    path = out / FINISHED
    found = set()
    for line in path.read_text("utf-8", "replace").splitlines() if path.is_file() else []:
        try:
            entry = json.loads(line)
            if entry["backend"] == backend and (entry["algorithm"], entry["cell"]) in compared:
                found.add(str(entry["when"])[:10])
        except (ValueError, KeyError, TypeError):
            continue  # cut off as a call was ended, or not ours
    each = sorted(found)
    return each[:1] + each[1:][-1:]
