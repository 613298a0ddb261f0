"""The files in a validation's folder, from which an interrupted validation continues.

OUT/<backend>/<algorithm>/<cell>        tables of real runs; <cell>.3 has the runs after the third
OUT/finished.jsonl                      date, kernel and duration of each measurement
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from narrows import locks
from narrows.results.results import Results, is_finished
from narrows.results.tables import cannot_write
from narrows.validate import measures
from narrows.validate.evidence import Evidence
from narrows.validate.place import Place

FINISHED = "finished.jsonl"


@dataclass(frozen=True)
class Kept:
    """A folder with the runs on a backend's real stacks."""

    out: Path
    backend: str

    def parts(self, place: Place, kernel: str | None = None) -> Iterator[Results]:
        """Yields the runs of a cell in parts, one part per call of the command.

        Each call continues where the previous call ended.

        Args:
            place: the cell.
            kernel: yield only results of this kernel (None: of any kernel).

        Yields:
            Runs of the cell's present scenario.
        """
        first = 0
        while is_finished(folder := place.folder(self.backend, first)):
            part = Results.read(folder)
            runs = len(part.runs)
            # Older scenarios do not set the buffer. In their runs, real sockets had the buffer that present
            # scenarios set.
            now = place.scenario(runs, first).facts()
            before = {"receive_buffer": now["receive_buffer"]} | dict(part.metadata.get("scenario") or {})
            if before != now:
                return
            if kernel is not None and part.metadata.get("kernel") != kernel:
                return
            yield part
            first += runs

    def sound(self, place: Place, kernel: str | None) -> int:
        """Number of runs to keep: the runs of this scenario and kernel before the first disturbed part."""
        count = 0
        for part in self.parts(place, kernel):
            if not all(verdict["sound"] for verdict in part.soundness.values()):
                break
            count += len(part.runs)
        return count

    def drop(self, place: Place, first: int) -> None:
        """Remove all parts that begin after run `first`. The part that begins at `first` is run again."""
        for later in place.folder(self.backend).parent.glob(f"{place.cell.name}.[0-9]*"):
            number = later.name.rpartition(".")[2]
            if not (number.isascii() and number.isdecimal()):
                continue  # not a folder of this validation
            if int(number) > first:
                try:
                    shutil.rmtree(later)
                except OSError as error:
                    raise cannot_write(later, error) from None

    def evidence(self, place: Place) -> Evidence | None:
        """See `Source`."""
        parts = list(self.parts(place))
        if not parts:
            return None
        verdicts = [verdict for part in parts for verdict in part.soundness.values()]
        return Evidence(
            measures.together(measures.sides(part) for part in parts),
            measures.together(measures.sides(part, disturbed=True) for part in parts),
            tuple(row["seed"] for part in parts for row in part.runs.to_pylist()),
            sum(not verdict["sound"] for verdict in verdicts),
            tuple(dict.fromkeys(reason for verdict in verdicts for reason in verdict.get("reasons", []))),
            frozenset(str(part.metadata.get("kernel", "")) for part in parts),
            frozenset(self._days.get(place.name, ())),
        )

    @cached_property
    def _days(self) -> dict[str, set[str]]:
        """The days of the measurements, by the name of algorithm and cell."""
        path = self.out / FINISHED
        found: dict[str, set[str]] = {}
        for line in path.read_text("utf-8", "replace").splitlines() if path.is_file() else []:
            try:
                entry = json.loads(line)
                if entry["backend"] == self.backend:
                    name = f"{entry['algorithm']}/{entry['cell']}"
                    found.setdefault(name, set()).add(str(entry["when"])[:10])
            except (ValueError, KeyError, TypeError):
                continue  # truncated by an interrupted call, or not written by this command
        return found


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Lock the folder. Without the lock, two concurrent calls would remove each other's results.

    Raises:
        OutputError: if another call holds the lock, or the folder cannot be created.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        held = locks.claim(out)
    except OSError as error:
        raise cannot_write(out, error) from None
    try:
        yield
    finally:
        os.close(held)


_lines = threading.Lock()


def note(place: Place, backend: str, kernel: str, runs: int, seconds: float) -> None:
    """Record the date and the duration of a measurement."""
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
