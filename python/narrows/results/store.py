"""Stores the tables of a sweep in memory or in a folder.

In a folder, finished runs are written in segments during the sweep. The segments are merged at the end.

OUT/metadata.json               version, scenario, runs; for runs in real time also their soundness
OUT/runs/<n>/<table>.parquet    a segment of finished runs: see `segments`
OUT/<table>.{parquet,csv}       all runs; written after the sweep, when runs/ is removed
OUT/logs/<id>/<file>            logs of agents and other programs of a run on real stacks
OUT/timing.csv                  wall times, which differ between identical sweeps

All files are first written to a temporary folder. They replace earlier results at the end (see `exchange`).
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from narrows import locks
from narrows.errors import OutputError
from narrows.results import exchange, segments, tables
from narrows.results.results import DATASET, LOGS, METADATA, SOUNDNESS, STOPPED, Results, holds_runs
from narrows.results.tables import FORMATS, Format

CSV_ROWS = 1_000_000
"""Maximum number of rows of a table that is also written as CSV if the user names no format. A CSV file with
this number of rows has about 100 MB."""


class Writer(Protocol):
    """Writes finished runs for a store. Workers in other processes get a copy of this object."""

    def is_reachable(self) -> bool:
        """Whether this process can write to the store.

        If it cannot, the worker returns the files of segments to the sweep's process, which writes them.
        """

    def is_written(self, runs: Sequence[int]) -> bool:
        """Whether the store has segments with exactly these runs. `runs` must be sorted.

        Raises:
            OutputError: if the store cannot be read.
        """

    def put(self, runs: Mapping[int, Mapping[str, pa.Table]]) -> None:
        """Write runs as segments. Each segment is written atomically.

        Raises:
            OutputError: if they cannot be written.
        """


class Store(Protocol):
    """Takes the tables of runs, in any order and from several threads."""

    metadata: dict[str, Any]
    """Version, scenario and runs."""

    @property
    def segment_seconds(self) -> float:
        """Intended total wall time of the runs of a segment, in seconds."""

    @property
    def writer(self) -> Writer | None:
        """The writer for workers in other processes (None: only threads can write)."""

    def beside(self, name: str, metadata: dict[str, Any]) -> Store:
        """Another store of the same kind.

        If this store has a folder or a URL, the folder or URL of the new store ends with `name`.

        Raises:
            OutputError: under the same conditions as in `Folder`.
        """

    def add(
        self, run: int, data: dict[str, pa.Table], seconds: float, soundness: Mapping[str, Any] | None = None
    ) -> None:
        """Add the tables of a finished run."""

    def keep(self, run: int, logs: Mapping[str, str | Path]) -> None:
        """Keep the logs of a run: for each file name, the text of the log or the path of a file to move."""

    def note(self, seconds: Mapping[int, float], files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Record the runs of a worker in another process.

        Args:
            seconds: wall times of the runs, by the number of the run.
            files: the files of segments that the worker could not write into the store, by lowest run.

        Raises:
            OutputError: if they cannot be written.
        """

    def settle(self) -> int:
        """Stop taking runs, and return the number of finished runs."""

    @property
    def kept(self) -> frozenset[int]:
        """The numbers of the runs that an earlier, interrupted sweep has finished."""

    def finish(self, complete: bool) -> Results:
        """Close the store after the last run."""

    def abandon(self) -> Results | None:
        """Close the store after a failed run. The finished runs stay on disk, and are returned."""


class Memory:
    """Keeps tables in memory."""

    segment_seconds = segments.WAIT_SECONDS
    writer = None

    def __init__(self, metadata: dict[str, Any]) -> None:
        self.metadata = metadata
        self._runs: dict[int, dict[str, pa.Table]] = {}

    def beside(self, name: str, metadata: dict[str, Any]) -> Memory:  # noqa: ARG002 (protocol)
        """Another store in memory."""
        return Memory(metadata)

    def add(
        self,
        run: int,
        data: dict[str, pa.Table],
        seconds: float,  # noqa: ARG002 (protocol)
        soundness: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the tables of a finished run."""
        self._runs[run] = data
        if soundness is not None:
            self.metadata.setdefault(SOUNDNESS, {})[str(run)] = dict(soundness)

    def keep(self, run: int, logs: Mapping[str, str | Path]) -> None:
        """Discard the logs, because only a folder can keep them."""

    def note(self, seconds: Mapping[int, float], files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Do nothing, because worker processes cannot write to memory."""

    def settle(self) -> int:
        """Return the number of finished runs."""
        return len(self._runs)

    @property
    def kept(self) -> frozenset[int]:
        """Always empty, because memory keeps no runs of an earlier sweep."""
        return frozenset()

    def finish(self, complete: bool) -> Results:  # noqa: ARG002 (protocol)
        """Close the store after the last run."""
        runs = [self._runs[run] for run in sorted(self._runs)]
        names = sorted({name for run in runs for name in run})
        merged = {name: segments.joined(name, [run[name] for run in runs if name in run]) for name in names}
        return Results(self.metadata, merged)

    def abandon(self) -> Results | None:
        """Close the store after a failed run."""
        return None


class Folder:
    """Writes tables into a folder.

    Args:
        path: the folder. If it has results of an earlier sweep, they are replaced when this sweep is
            complete. A folder with files that are not results is refused.
        metadata: version, scenario and runs.
        formats: formats of the merged tables (None: Parquet, and CSV for tables of up to `CSV_ROWS` rows).
        resume: whether to keep the finished runs of an interrupted or killed sweep of the same runs.

    Raises:
        OutputError: if the folder cannot be written or has other files, or if another run is writing there.
    """

    segment_seconds = segments.WAIT_SECONDS

    def __init__(
        self,
        path: Path,
        metadata: dict[str, Any],
        formats: tuple[Format, ...] | None = None,
        *,
        resume: bool = False,
    ) -> None:
        self._path, self._formats, self.metadata = path, formats, dict(metadata)
        self._part = path / exchange.PART
        self._lock = threading.Lock()
        self._collected = segments.Collected()
        self._timing: dict[int, float] = {}
        self._later: threading.Timer | None = None
        self._writing = threading.Lock()
        self._stage = self._part
        self._made: list[Path] = []
        self._held = -1
        self._kept: frozenset[int] = frozenset()
        try:
            if path.exists() and not path.is_dir():
                raise OutputError(f"{path}: found a file, expected a folder")
            self._made = [folder for folder in (path, *path.parents) if not folder.exists()]
            path.mkdir(parents=True, exist_ok=True)
            self._held = locks.claim(path)
            earlier = exchange.unfinished(path, self.metadata) if resume else None
            exchange.settle(path, keep_part=earlier == self._part)
            if DATASET in _metadata(path):
                raise OutputError(f"{path}: found a dataset, expected an empty folder or earlier results")
            others = [entry for entry in path.iterdir() if entry != self._part]
            if others and not (path / METADATA).exists():
                raise OutputError(f"{path}: found other files, expected an empty folder or earlier results")
            (self._part / segments.RUNS).mkdir(parents=True, exist_ok=earlier is not None)
            segments.discard_stages(self._part)
            self._stage = segments.new_stage(self._part)
            if earlier is not None:
                self._take_over(earlier)
            write_text(self._part / METADATA, self._description())
        except OSError as error:
            self.abandon()
            raise tables.cannot_write(path, error) from None
        except BaseException:
            self._release()
            raise

    def beside(self, name: str, metadata: dict[str, Any]) -> Folder:
        """Another folder next to this one. If a folder of that name has other files, a number is appended."""
        path = self._path if self._path.name not in ("", "..") else self._path.resolve()
        for number in itertools.count(1):
            place = path.with_name(f"{path.name}-{name}" + (f"-{number}" if number > 1 else ""))
            if not place.exists() or STOPPED in _metadata(place):
                break
        return Folder(place, metadata, self._formats)

    def _take_over(self, earlier: Path) -> None:
        """Take over the finished runs that are in the folder `earlier`."""
        self._kept = frozenset(
            segments.runs_in(earlier) if earlier == self._part else segments.copy(earlier, self._stage)
        )
        self._timing = dict.fromkeys(self._kept, 0.0) | _timing(earlier)
        sound = json.loads((earlier / METADATA).read_text(encoding="utf-8")).get(SOUNDNESS, {})
        if sound:
            self.metadata[SOUNDNESS] = {run: what for run, what in sound.items() if int(run) in self._kept}

    def _release(self) -> None:
        if self._held >= 0:
            os.close(self._held)
        self._held = -1

    def _description(self) -> str:
        return json.dumps(self.metadata, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def add(
        self, run: int, data: dict[str, pa.Table], seconds: float, soundness: Mapping[str, Any] | None = None
    ) -> None:
        """Add the tables of a finished run. They are on disk after `segments.WAIT_SECONDS` at the latest.

        Raises:
            OutputError: if these tables and the runs that waited cannot be written. All these runs are lost.
        """
        with self._lock:
            if soundness is not None:
                self.metadata.setdefault(SOUNDNESS, {})[str(run)] = dict(soundness)
            self._timing[run] = seconds
            is_due = self._collected.add(run, data)
            if not is_due and self._later is None:
                self._later = threading.Timer(segments.WAIT_SECONDS, self._write_later)
                self._later.daemon = True
                self._later.start()
        if is_due:
            self._write()

    def _write_later(self) -> None:
        """Write the runs that wait. If the write fails, they wait for the next write."""
        with contextlib.suppress(OSError):
            self._write_collected(keep=True)

    def _write(self) -> None:
        """Write the runs that wait.

        Raises:
            OutputError: if the runs cannot be written. In this case, they are lost.
        """
        try:
            self._write_collected(keep=False)
        except OSError as error:
            raise tables.cannot_write(self._path, error) from None

    def _write_collected(self, *, keep: bool) -> None:
        """Write the runs that wait as a segment. Other threads can add runs meanwhile.

        Args:
            keep: whether runs that cannot be written wait for the next write (false: they are lost).

        Raises:
            OSError: if they cannot be written.
        """
        with self._writing:
            with self._lock:
                if self._later is not None:
                    self._later.cancel()
                    self._later = None
                runs = self._collected.take()
                described = self._description() if SOUNDNESS in self.metadata else ""
            if not runs:
                return
            try:
                if described:
                    # Write the soundness before the tables. Otherwise, a disturbed run would seem to be sound
                    # if the process is killed between the two writes.
                    write_text(self._part / METADATA, described)
                segments.put(self._stage, runs)
            except OSError:
                with self._lock:
                    for run, data in runs.items():
                        if keep:
                            self._collected.add(run, data)
                        else:
                            del self._timing[run]
                raise

    def take(self, results: Results) -> None:
        """Copy all runs from other results of the same sweep.

        Raises:
            OutputError: if they cannot be copied.
        """
        assert results.folder is not None
        try:
            runs = segments.copy(results.folder, self._stage)
            if (logs := results.folder / LOGS).is_dir():
                shutil.copytree(logs, self._part / LOGS, dirs_exist_ok=True)
        except OSError as error:
            raise tables.cannot_write(self._path, error) from None
        self._timing |= dict.fromkeys(runs, 0.0) | _timing(results.folder)
        if SOUNDNESS in results.metadata:
            self.metadata.setdefault(SOUNDNESS, {}).update(results.soundness)

    def keep(self, run: int, logs: Mapping[str, str | Path]) -> None:
        """Keep the logs of a run: for each file name, the text of the log or the path of a file to move."""
        folder = self._part / LOGS / str(run)
        try:
            for name, log in logs.items():
                folder.mkdir(parents=True, exist_ok=True)
                if isinstance(log, Path):
                    shutil.move(log, folder / name)
                else:
                    write_text(folder / name, log)
        except OSError as error:
            raise tables.cannot_write(self._path, error) from None

    @property
    def stage(self) -> Path:
        """The folder in which workers in other processes write segments."""
        return self._stage

    @property
    def writer(self) -> Writer:
        """The writer of segments for workers in other processes."""
        return segments.Writer(self._stage.absolute())

    def note(self, seconds: Mapping[int, float], files: Mapping[int, Mapping[str, bytes]]) -> None:
        """Record the runs of a worker in another process.

        Args:
            seconds: wall times of runs by number.
            files: the files of segments that the worker could not write into the folder.

        Raises:
            OutputError: if they cannot be written.
        """
        try:
            for number, content in files.items():
                segments.put_files(self._stage, number, content)
        except OSError as error:
            raise tables.cannot_write(self._path, error) from None
        with self._lock:
            self._timing.update(seconds)

    def settle(self) -> int:
        """Write the runs that wait, stop workers from adding runs, and return the number of finished runs.

        The number includes runs that a worker wrote before it could report them.

        Raises:
            OutputError: if runs that wait cannot be written, or if a segment cannot be read.
        """
        self._write()
        segments.discard_stages(self._part)
        finished = segments.runs_in(self._part)
        self._timing = {run: self._timing.get(run, 0.0) for run in finished}
        return len(finished)

    @property
    def kept(self) -> frozenset[int]:
        """The numbers of the runs that an earlier, interrupted sweep has finished."""
        return self._kept

    def finish(self, complete: bool) -> Results:
        """Close the store after the last run. The finished runs of an incomplete sweep stay readable."""
        try:
            self.settle()
            lines = [f"{run},{seconds:.6f}" for run, seconds in sorted(self._timing.items())]
            write_text(self._part / "timing.csv", "\n".join(["run,wall_s", *lines]) + "\n")
            if complete:
                self._merge()
            return Results.read(self._put(complete))
        except (OSError, OutputError) as error:
            failed = error if isinstance(error, OutputError) else tables.cannot_write(self._path, error)
            failed.left = self.abandon()
            raise failed from None
        except BaseException:
            self.abandon()
            raise
        finally:
            self._release()

    def _merge(self) -> None:
        """Merge the tables of all runs. If the merge fails, the unmerged segments stay."""
        # The table of runs is written last. If this table exists, all other tables exist, too.
        names = (*tables.SCHEMAS, segments.RUNS)
        try:
            for name in names:
                if parts := segments.segments(self._part, name):
                    formats = self._formats or default_formats(segments.count(self._part, name))
                    paths = [self._part / f"{name}.{suffix}" for suffix in formats]
                    tables.write_rows(paths, segments.in_order(parts), segments.schema(parts))
        except BaseException:
            for name, suffix in itertools.product(names, FORMATS):
                (self._part / f"{name}.{suffix}").unlink(missing_ok=True)
            raise
        shutil.rmtree(self._part / segments.RUNS)

    def _put(self, complete: bool) -> Path:
        """Make the written files the results of the folder, and return the folder of the results.

        Only a complete sweep replaces earlier runs.
        """
        if not complete and holds_runs(self._path):
            return exchange.put_aside(self._path)
        exchange.exchange(self._path)
        return self._path

    def abandon(self) -> Results | None:
        """Close the store after a failed run, and return the finished runs.

        If no run finished, remove all files.
        """
        try:
            with contextlib.suppress(OutputError):  # e.g. a full disk; written segments stay
                self._write()
            if self.settle() and self._part.exists():
                return Results.read(self._put(complete=False))
            shutil.rmtree(self._part, ignore_errors=True)
            for folder in self._made:
                folder.rmdir()
        except (OSError, OutputError):
            pass  # the folder is missing, or the disk is full
        finally:
            self._release()
        return None


def default_formats(rows: int) -> tuple[Format, ...]:
    """The formats of a table with this number of rows, if the user names no format."""
    return FORMATS if rows <= CSV_ROWS else ("parquet",)


def write_text(path: Path, text: str) -> None:
    """Write a file atomically: readers see either no file or the complete file."""
    with _aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """Yield a temporary name for a file. After the write, the file gets its final name."""
    aside = path.with_name(f".{path.name}.part")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file that a user requested. The write is atomic. Text is written as UTF-8.

    Raises:
        OutputError: if the file cannot be written.
    """
    try:
        if isinstance(content, str):
            write_text(path, content)
            return
        with _aside(path) as aside:
            aside.write_bytes(content)
    except OSError as error:
        raise tables.cannot_write(path, error) from None


def _metadata(folder: Path) -> dict[str, Any]:
    """The metadata of a folder of results (empty: the folder has none)."""
    try:
        found = json.loads((folder / METADATA).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _timing(folder: Path) -> dict[int, float]:
    """Wall times of the runs in a folder (empty for the folder of a killed sweep)."""
    try:
        with (folder / "timing.csv").open(encoding="utf-8", newline="") as file:
            return {int(row["run"]): float(row["wall_s"]) for row in csv.DictReader(file)}
    except (OSError, KeyError, ValueError):
        return {}
