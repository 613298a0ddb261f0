"""The work of a worker process, which performs the runs of a batch and writes their results as segments."""

from __future__ import annotations

import pickle
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from narrows.backends import Backend, Output
from narrows.errors import NarrowsError, OutputError, ScenarioError, one_line
from narrows.executors import Batch, Job, Report
from narrows.results import segments, tables
from narrows.results.store import Writer
from narrows.version import release


def output_of(job: Job, backend: Backend, source: str) -> Output:
    """Perform a run.

    Args:
        job: the run.
        backend: the backend that performs the run.
        source: file of the scenario, for errors.

    Raises:
        ScenarioError: if the run is not possible.
    """
    plan = job.plan.copy()
    plan["seed"] = job.seed
    try:
        return backend.run(plan)
    except ScenarioError as error:
        raise error.in_source(source) from None


@dataclass(frozen=True)
class Apart:
    """Performs batches in other processes, which may be on other machines.

    If a worker can access the store, it writes segments there. A worker without access returns the files of
    its segments.
    """

    backend: Backend
    writer: Writer
    """Writes segments into the store."""
    source: str
    """File of the scenario, for errors."""
    version: str
    """Version of Narrows in the sweep's process."""

    def __call__(self, batch: Batch) -> Report:
        """Perform the runs of a batch."""
        host = socket.gethostname()
        if release() != self.version:
            differs = f"{host}: found Narrows {release()}, expected {self.version}, the version of the sweep"
            return Report(host, {}, error=NarrowsError(differs))
        seconds: dict[int, float] = {}
        files: dict[int, dict[str, bytes]] = {}
        is_shared = self.writer.is_reachable()
        for jobs in batch:
            try:
                if is_shared and self.writer.is_written([job.run for job in jobs]):
                    # An earlier attempt at this batch has already written the segment.
                    seconds |= dict.fromkeys((job.run for job in jobs), 0.0)
                    continue
            except OutputError as problem:
                return Report(host, seconds, files, problem)
            finished, times, error = self._make(jobs)
            try:
                if finished and is_shared:
                    self.writer.put(finished)
                elif finished:
                    files[jobs[0].run] = _files(finished)
                seconds |= times
            except OSError as problem:
                error = NarrowsError(f"{host}: cannot write temporary files ({problem.strerror})")
            except OutputError as problem:
                error = problem
            if error is not None:
                return Report(host, seconds, files, error)
        return Report(host, seconds, files)

    def _make(
        self, jobs: tuple[Job, ...]
    ) -> tuple[dict[int, dict[str, pa.Table]], dict[int, float], Exception | None]:
        """The tables and times of all runs before the first failed run, and the error of the failed run."""
        finished: dict[int, dict[str, pa.Table]] = {}
        seconds: dict[int, float] = {}
        for job in jobs:
            started = time.monotonic()
            try:
                output = output_of(job, self.backend, self.source)
                finished[job.run] = tables.tables(job.run, job.seed, job.factors, output)
            except Exception as error:  # the sweep raises this error
                return finished, seconds, _portable(error)
            seconds[job.run] = time.monotonic() - started
        return finished, seconds, None


def _portable(error: Exception) -> Exception:
    """The error itself or, if it cannot be pickled for the sweep's process, an error with the same text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # the constructor of a user's class may raise anything
        return NarrowsError(one_line(f"{type(error).__name__}: {error}"))
    return error


def _files(runs: dict[int, dict[str, pa.Table]]) -> dict[str, bytes]:
    """The files of a segment."""
    with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
        (Path(folder) / segments.RUNS).mkdir()
        segments.put(segments.new_stage(Path(folder)), runs)
        return {path.name: path.read_bytes() for path in segments.files(Path(folder))}
