"""Where a sweep puts its tables: in memory, or in a folder run by run and merged at the end.

OUT/metadata.json               written first: version, scenario, runs; of real-time runs also their soundness
OUT/runs/<id>/<table>.parquet   a finished run; the folder appears whole or not at all
OUT/<table>.{parquet,csv}       all runs, once the sweep is over; runs/ is then gone
OUT/logs/<id>/<file>            what agents and other programs of a run on real stacks wrote
OUT/timing.csv                  wall times, which differ between identical sweeps
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from narrows.errors import OutputError
from narrows.results import tables
from narrows.results.results import METADATA, SOUNDNESS, Results, finished
from narrows.results.tables import Format

LOGS = "logs"
"""Folder of what programs wrote."""


class Store(Protocol):
    """Takes the tables of runs, in any order and from several threads."""

    def add(
        self, run: int, data: dict[str, pa.Table], seconds: float, soundness: Mapping[str, Any] | None = None
    ) -> None:
        """A run is finished."""

    def keep(self, run: int, logs: Mapping[str, str]) -> None:
        """What programs of a run wrote, by name of a file."""

    @property
    def finished(self) -> int:
        """How many runs are finished."""

    def finish(self, complete: bool) -> Results:
        """No more runs come."""

    def abandon(self) -> None:
        """A run failed: finished ones stay, and without any nothing is left behind."""


class Memory:
    """Keeps tables in memory."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        self._metadata = metadata
        self._runs: dict[int, dict[str, pa.Table]] = {}

    def add(
        self,
        run: int,
        data: dict[str, pa.Table],
        seconds: float,  # noqa: ARG002 (protocol)
        soundness: Mapping[str, Any] | None = None,
    ) -> None:
        """A run is finished."""
        self._runs[run] = data
        if soundness is not None:
            self._metadata.setdefault(SOUNDNESS, {})[str(run)] = dict(soundness)

    def keep(self, run: int, logs: Mapping[str, str]) -> None:
        """Logs are for people who look into folders."""

    @property
    def finished(self) -> int:
        """How many runs are finished."""
        return len(self._runs)

    def finish(self, complete: bool) -> Results:  # noqa: ARG002 (protocol)
        """No more runs come."""
        runs = [self._runs[run] for run in sorted(self._runs)]
        names = {name for run in runs for name in run}
        merged = {
            name: pa.concat_tables([run[name] for run in runs if name in run], promote_options="default")
            for name in sorted(names)
        }
        return Results(self._metadata, merged)

    def abandon(self) -> None:
        """A run failed."""


class Folder:
    """Writes tables into a folder.

    Args:
        path: the folder; results of an earlier sweep in it are replaced, anything else is refused.
        metadata: what is run.
        formats: of the merged tables.

    Raises:
        OutputError: if it cannot be written, or holds something else.
    """

    def __init__(self, path: Path, metadata: dict[str, Any], formats: tuple[Format, ...]) -> None:
        self._path, self._formats, self._metadata = path, formats, dict(metadata)
        self._lock = threading.Lock()
        self._timing: dict[int, float] = {}
        self._made: list[Path] = []
        try:
            if path.exists() and not path.is_dir():
                raise OutputError(f"{path}: found a file, expected a folder")
            if path.exists() and any(path.iterdir()) and not (path / METADATA).exists():
                raise OutputError(f"{path}: found other files, expected an empty folder or earlier results")
            self._made = [folder for folder in (path, *path.parents) if not folder.exists()]
            path.mkdir(parents=True, exist_ok=True)
            self._clear()
            self._describe()
            (path / "runs").mkdir()
        except OSError as error:
            self.abandon()
            raise tables.cannot_write(path, error) from None

    def _describe(self) -> None:
        text = json.dumps(self._metadata, indent=2, ensure_ascii=False, allow_nan=False)
        (self._path / METADATA).write_text(text + "\n", encoding="utf-8")

    def _clear(self) -> None:
        for name in ("runs", LOGS):
            shutil.rmtree(self._path / name, ignore_errors=True)
        for name in ("runs", *tables.SCHEMAS):
            for suffix in tables.FORMATS:
                (self._path / f"{name}.{suffix}").unlink(missing_ok=True)
        (self._path / "timing.csv").unlink(missing_ok=True)

    def add(
        self, run: int, data: dict[str, pa.Table], seconds: float, soundness: Mapping[str, Any] | None = None
    ) -> None:
        """A run is finished."""
        partial, whole = self._path / "runs" / f".{run}", self._path / "runs" / str(run)
        try:
            partial.mkdir()
            for name, content in data.items():
                tables.write(partial / f"{name}.parquet", content)
            partial.rename(whole)
            with self._lock:
                self._timing[run] = seconds
                if soundness is not None:
                    self._metadata.setdefault(SOUNDNESS, {})[str(run)] = dict(soundness)
                    self._describe()
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise tables.cannot_write(whole, error) from None
        except OutputError:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def keep(self, run: int, logs: Mapping[str, str]) -> None:
        """What programs of a run wrote, by name of a file."""
        folder = self._path / LOGS / str(run)
        try:
            for name, text in logs.items():
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise tables.cannot_write(folder, error) from None

    @property
    def finished(self) -> int:
        """How many runs are finished."""
        return len(self._timing)

    def finish(self, complete: bool) -> Results:
        """No more runs come; of an incomplete sweep the finished runs stay as they are, and can be read."""
        try:
            lines = [f"{run},{seconds:.6f}" for run, seconds in sorted(self._timing.items())]
            (self._path / "timing.csv").write_text("\n".join(["run,wall_s", *lines]) + "\n", encoding="utf-8")
            if complete:
                for name in ("runs", *tables.SCHEMAS):
                    parts = finished(self._path, f"{name}.parquet")
                    for suffix in self._formats:
                        tables.write_all(
                            self._path / f"{name}.{suffix}", (tables.read(part) for part in parts)
                        )
                shutil.rmtree(self._path / "runs")
        except OSError as error:
            raise tables.cannot_write(self._path, error) from None
        return Results.read(self._path)

    def abandon(self) -> None:
        """A run failed: finished ones stay, and without any nothing is left behind."""
        if self._timing:
            return
        with contextlib.suppress(OSError):  # not empty, not ours to remove, or not even a folder
            self._clear()
            (self._path / METADATA).unlink(missing_ok=True)
            for folder in self._made or [self._path]:
                folder.rmdir()
