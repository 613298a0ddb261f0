"""Stores the tables of a sweep as a dataset."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from narrows.errors import OutputError
from narrows.results import segments as local
from narrows.results.datasets.layout import Layout, identity
from narrows.results.datasets.objects import Objects
from narrows.results.datasets.segments import Marked, Writer, committed
from narrows.results.datasets.source import read_metadata
from narrows.results.results import DATASET, METADATA, SOUNDNESS, Results

SEGMENT_SECONDS = 10.0
"""Longest time that a finished run waits until it is written. In a folder of results, this time is shorter
(`narrows.results.segments`). But the segments of a dataset are never merged, and each segment has one object
per table. Larger segments therefore mean fewer objects."""
_TIMING = "timing.csv"


class Dataset:
    """Writes tables below a URL.

    Args:
        url: the URL. Results at the URL are an error, unless `resume` is set and they belong to the same
            sweep.
        metadata: version, scenario and runs.
        resume: whether to keep the finished runs of an interrupted or killed sweep of the same runs.

    Raises:
        OutputError: if the dataset cannot be written, or if the URL has other results.
    """

    def __init__(self, url: str, metadata: dict[str, Any], *, resume: bool = False) -> None:
        self.url, self.metadata = url, dict(metadata)
        self._objects = Objects(url)
        self._layout = Layout.of(self.metadata)
        self._token = secrets.token_hex(8)
        self.segment_seconds = SEGMENT_SECONDS
        self._collected = local.Collected(self.segment_seconds)
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._later: threading.Timer | None = None
        self._timing: dict[int, float] = {}
        self._kept: frozenset[int] = frozenset()
        self._has_failed = False
        self._read: dict[str, Marked] = {}
        """Markers that were read before. A marker never changes."""
        self.writer = Writer(url, self._layout)
        self._begin(resume=resume)

    def _begin(self, *, resume: bool) -> None:
        """Claim the URL for this sweep, and find the runs to keep."""
        earlier, facts = read_metadata(self._objects)
        if facts is None:
            if self._objects.names(local.RUNS):
                raise OutputError(
                    f"{self.url}: found tables without {METADATA}, expected none; choose another place"
                )
            if not self._objects.create(METADATA, self._description()):
                raise OutputError(f"{self.url}: another sweep has started at this URL, expected none")
            return
        if identity(earlier) != self._layout.sweep:
            advice = "" if resume else "; choose another place"
            raise OutputError(f"{self.url}: found results of another sweep, expected none{advice}")
        if not resume:
            raise OutputError(
                f"{self.url}: found results of this sweep, expected none; continue it with --reuse, or "
                "choose another place"
            )
        marked = committed(self._objects, self._layout.sweep, self._read)
        self._kept = frozenset(itertools.chain.from_iterable(one.numbers for one in marked))
        self._timing = dict.fromkeys(self._kept, 0.0) | _timing(self._objects.read(_TIMING))
        if sound := earlier.get(SOUNDNESS):
            self.metadata[SOUNDNESS] = {run: what for run, what in sound.items() if int(run) in self._kept}
        self._objects.write(METADATA, self._description())

    def _description(self, marked: list[Marked] | None = None) -> bytes:
        """The content of metadata.json.

        Args:
            marked: the segments of the complete sweep (None: the sweep is not complete).
        """
        facts: dict[str, Any] = {
            "complete": marked is not None,
            "writer": self._token,
            "partitions": list(self._layout.keys),
        }
        if marked is not None:
            facts["segments"] = [
                {"folder": one.segment.folder, "name": one.segment.name, "tables": list(one.segment.tables)}
                for one in marked
            ]
        return (
            json.dumps({**self.metadata, DATASET: facts}, indent=1, ensure_ascii=False, allow_nan=False)
            + "\n"
        ).encode()

    def beside(self, name: str, metadata: dict[str, Any]) -> Dataset:
        """Another dataset whose URL ends with `name`.

        If that URL already has results, a number is appended.
        """
        for number in itertools.count(1):
            url = f"{self.url}-{name}" + (f"-{number}" if number > 1 else "")
            if Objects(url).read(METADATA) is None:
                break
        return Dataset(url, metadata)

    @property
    def kept(self) -> frozenset[int]:
        """The numbers of the runs that an earlier, interrupted sweep has finished."""
        return self._kept

    def add(
        self, run: int, data: dict[str, pa.Table], seconds: float, soundness: Mapping[str, Any] | None = None
    ) -> None:
        """Add the tables of a finished run. They are stored after `SEGMENT_SECONDS` at the latest.

        Raises:
            OutputError: if these tables, or runs that were waiting, cannot be written. All these runs are
            lost.
        """
        with self._lock:
            if soundness is not None:
                self.metadata.setdefault(SOUNDNESS, {})[str(run)] = dict(soundness)
            self._timing[run] = seconds
            is_due = self._collected.add(run, data)
            if not is_due and self._later is None:
                self._later = threading.Timer(self.segment_seconds, self._write_later)
                self._later.daemon = True
                self._later.start()
        if is_due:
            self._write()

    def _write_later(self) -> None:
        """Write the runs that wait. If the write fails, they wait for the next write."""
        with contextlib.suppress(OutputError):
            self._write(keep=True)

    def _write(self, *, keep: bool = False) -> None:
        """Write the runs that wait. Other threads can add runs meanwhile.

        Args:
            keep: whether runs that cannot be written wait for the next write (false: they are lost).

        Raises:
            OutputError: if they cannot be written.
        """
        with self._writing:
            with self._lock:
                if self._later is not None:
                    self._later.cancel()
                    self._later = None
                runs = self._collected.take()
            if not runs:
                return
            try:
                self.writer.put(runs)
            except OutputError:
                self._has_failed |= not keep
                with self._lock:
                    for run, data in runs.items():
                        if keep:
                            self._collected.add(run, data)
                        else:
                            del self._timing[run]
                raise

    def keep(self, run: int, logs: Mapping[str, str | Path]) -> None:
        """Discard the logs. Runs with logs or captures need a folder (`narrows.sweep.run`)."""

    def note(self, seconds: Mapping[int, float], files: Mapping[int, Mapping[str, bytes]]) -> None:  # noqa: ARG002 (protocol)
        """Store the wall times of runs that a worker in another process has written."""
        with self._lock:
            self._timing.update(seconds)

    def settle(self) -> int:
        """Write the runs that wait, and return the number of finished runs.

        Raises:
            OutputError: if the store fails.
        """
        return sum(len(one.numbers) for one in self._settled())

    def _settled(self) -> list[Marked]:
        try:
            self._write()
            return committed(self._objects, self._layout.sweep, self._read)
        except OutputError:
            self._has_failed = True
            raise

    def finish(self, complete: bool) -> Results:
        """Close the store after the last run. The finished runs of an incomplete sweep stay readable.

        Raises:
            OutputError: if the store fails, or if another sweep has taken over.
        """
        marked = self._settled()
        self._check_owner()
        finished = [run for one in marked for run in one.numbers]
        lines = [f"{run},{self._timing.get(run, 0.0):.6f}" for run in sorted(finished)]
        self._objects.write(_TIMING, ("\n".join(["run,wall_s", *lines]) + "\n").encode())
        self._objects.write(METADATA, self._description(marked if complete else None))
        if complete:
            self._remove_surplus(marked)
        return Results.read(self.url)

    def _check_owner(self) -> None:
        """Check that no other process has continued this sweep.

        Raises:
            OutputError: if another process has continued this sweep, or if the store fails.
        """
        _, facts = read_metadata(self._objects)
        if facts is None or facts.get("writer") != self._token:
            raise OutputError(f"{self.url}: found another sweep that has taken over, expected none")

    def _remove_surplus(self, marked: list[Marked]) -> None:
        """Remove objects that are not part of the complete sweep, so that other tools read each run once.

        Surplus objects come from killed sweeps and lost workers. The marker of a segment is removed before
        its other objects.
        """
        ours = {name for one in marked for name in one.segment.files()}
        places = [local.RUNS, *sorted({table for one in marked for table in one.segment.tables})]
        for place in places:
            surplus = [name for name in self._objects.names(place) if name not in ours]
            if surplus:
                self._check_owner()
                self._objects.remove(surplus)

    def abandon(self) -> Results | None:
        """Close the store after a failed run. The finished runs stay, and are returned.

        If no run finished, remove the metadata and the wall times. If the store itself failed, remove
        nothing: a later sweep can continue.
        """
        if self._has_failed:
            return None
        with contextlib.suppress(OutputError):
            if self.settle():
                return self.finish(complete=False)
            self._check_owner()
            self._objects.remove([METADATA, _TIMING])
        return None


def whole(url: str, metadata: Mapping[str, Any]) -> Results | None:
    """The results at a URL, if they are complete and belong to the sweep with this metadata.

    Raises:
        OutputError: if the store fails.
    """
    known, facts = read_metadata(Objects(url))
    if facts is None or facts.get("complete") is not True:
        return None
    return Results.read(url) if identity(known) == identity(metadata) else None


def _timing(content: bytes | None) -> dict[int, float]:
    """Wall times of runs (empty: the sweep was killed, and has no file of wall times)."""
    try:
        rows = csv.DictReader(io.StringIO((content or b"").decode()))
        return {int(row["run"]): float(row["wall_s"]) for row in rows}
    except (KeyError, ValueError, TypeError):
        return {}
