"""Recordings: runs on real stacks in one file, for comparisons without new runs.

Runs on a kernel take hours, and do not depend on the version of the simulator. Each row describes a flow of a
run: its figures, and its window over time. The shipped recording is in `recordings/`.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from narrows.errors import NarrowsError, one_line
from narrows.results import tables
from narrows.validate import grid
from narrows.validate.evidence import Evidence, Source
from narrows.validate.measures import FIGURES, Side
from narrows.validate.place import Place

FILE = Path(__file__).with_name("recordings") / "linux-6.1.parquet"
"""File of the recording that narrows ships."""

_KEY = ("algorithm", "cell", "duration", "seed")
_WORDS = ("algorithm", "cell", "duration", "flow", "scenario", "kernel", "backend", "days", "reasons")
_SAMPLED = ("t_ms", "cwnd")
"""Columns with the samples after the warm-up: the time in whole ms, and the window in segments."""
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(_WORDS, pa.string()),
    "seed": pa.uint32(),
    "sound": pa.bool_(),
    **dict.fromkeys(FIGURES, pa.float64()),
    **dict.fromkeys(_SAMPLED, pa.list_(pa.uint32())),
}
_SCHEMA = pa.schema(_TYPES)


def digest(place: Place) -> str:
    """Digest of a cell's scenario. Runs with another digest do not apply to the cell."""
    text = grid.scenario(place.cell, place.algorithm, place.duration)
    return hashlib.sha256(json.dumps(tomllib.loads(text), sort_keys=True).encode()).hexdigest()[:16]


class Recording:
    """A recording, as a source of evidence."""

    def __init__(self, path: Path = FILE) -> None:
        """Open a recording.

        Raises:
            NarrowsError: if the file does not exist or is not a recording.
        """
        self.path = path
        if not path.is_file():
            raise NarrowsError(f"{path}: no such file; `narrows validate --on vm --record FILE` makes one")
        found = tables.read(path)
        wanted = "expected a recording of `narrows validate`"
        for name in _SCHEMA.names:
            if name not in found.column_names:
                raise NarrowsError(f"{path}: found no column {name!r}, {wanted}")
        try:
            self.rows: list[dict[str, Any]] = found.select(_SCHEMA.names).cast(_SCHEMA).to_pylist()
        except pa.ArrowException as error:
            raise NarrowsError(f"{path}: {wanted} ({one_line(str(error))})") from None
        if not self.rows:
            raise NarrowsError(f"{path}: found no rows, {wanted}")

    @property
    def durations(self) -> list[str]:
        """The durations of the recording's runs."""
        return sorted({row["duration"] for row in self.rows})

    @property
    def backend(self) -> str:
        """The backends of the recording's runs, as text."""
        return ", ".join(sorted({row["backend"] for row in self.rows}))

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
        found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for row in self.rows:
            found.setdefault((row["algorithm"], row["cell"], row["duration"]), []).append(row)
        return found

    def evidence(self, place: Place) -> Evidence | None:
        """See `Source`."""
        rows = self._by_cell.get((place.algorithm, place.cell.name, place.duration), [])
        now = digest(place)
        rows = sorted((row for row in rows if row["scenario"] == now), key=lambda row: row["seed"])
        if not rows:
            return None
        bad = [row for row in rows if not row["sound"]]
        return Evidence(
            _sides(row for row in rows if row["sound"]),
            _sides(bad),
            tuple(dict.fromkeys(row["seed"] for row in rows)),
            len({row["seed"] for row in bad}),
            tuple(dict.fromkeys(reason for row in bad for reason in row["reasons"].split("; ") if reason)),
            frozenset(row["kernel"] for row in rows),
            frozenset(day for row in rows for day in row["days"].split()),
        )


def _sides(rows: Iterable[dict[str, Any]]) -> dict[str, Side]:
    found: dict[str, Side] = {}
    for row in rows:
        side = found.setdefault(row["flow"], Side({figure: [] for figure in FIGURES}))
        for figure in FIGURES:
            side.figures[figure].append(float("nan") if row[figure] is None else row[figure])
        side.windows.append((np.asarray(row["t_ms"], float) / 1e3, np.asarray(row["cwnd"], float)))
        side.seeds.append(row["seed"])
    return found


def add(path: Path, source: Source, places: Sequence[Place], backend: str) -> int:
    """Add a source's runs of these cells to a recording. New rows replace earlier rows of the same runs.

    Returns:
        Number of rows in the recording.
    """
    new = [row for place in places for row in _rows(place, source.evidence(place), backend)]
    mine = {tuple(row[key] for key in _KEY) for row in new}
    old = Recording(path).rows if path.exists() else []
    rows = [row for row in old if tuple(row[key] for key in _KEY) not in mine] + new
    rows.sort(key=lambda row: (*(row[key] for key in _KEY), row["flow"]))
    tables.write(path, pa.Table.from_pylist(rows, _SCHEMA))
    return len(rows)


def _rows(place: Place, evidence: Evidence | None, backend: str) -> Iterable[dict[str, Any]]:
    if evidence is None:
        return
    common = {
        "algorithm": place.algorithm,
        "cell": place.cell.name,
        "duration": place.duration,
        "scenario": digest(place),
        "kernel": ", ".join(sorted(evidence.kernels)),
        "backend": backend,
        "days": " ".join(sorted(evidence.days)),
    }
    for sound, sides in ((True, evidence.sides), (False, evidence.disturbed)):
        reasons = "" if sound else "; ".join(evidence.reasons)
        for flow, side in sides.items():
            for run, seed in enumerate(side.seeds):
                t, window = side.windows[run]
                yield common | {
                    "seed": seed,
                    "flow": flow,
                    "sound": sound,
                    "reasons": reasons,
                    **{figure: side.figures[figure][run] for figure in FIGURES},
                    "t_ms": np.rint(t * 1e3).astype(np.uint32),
                    "cwnd": np.rint(window).astype(np.uint32),
                }
