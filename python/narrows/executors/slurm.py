"""The executor on a Slurm cluster, by submitit. All nodes must have access to the sweep's folder.

If the sweep's results are stored at a URL, the sweep has no folder. The jobs then share a temporary folder in
the current folder.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError, UncompletedJobError

from narrows.errors import NarrowsError, one_line
from narrows.executors import NAP_SECONDS, Batch, Report, Task

JOBS = 64
"""Default number of concurrent Slurm jobs."""
_LIMIT_MINUTES = 60
"""Time limit of a Slurm job, unless the environment variable SBATCH_TIMELIMIT sets another limit."""


class Slurm:
    """Performs batches as jobs of a Slurm cluster. Slurm repeats the jobs of lost nodes.

    Environment variables of sbatch (SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_TIMELIMIT and others) set the
    options of jobs.

    Args:
        jobs: number of concurrent Slurm jobs (None: `JOBS`).
        cluster: `slurm`, or `local` for tests: processes on this machine instead of Slurm jobs.
    """

    name = "slurm"
    shares_memory = False
    batch_seconds = 120.0

    def __init__(self, jobs: int | None = None, cluster: str = "slurm") -> None:
        self.slots = jobs or JOBS
        self._cluster = cluster
        self._active: list[Any] = []

    def perform(self, task: Task, batches: Iterator[Batch], scratch: Path | None) -> Iterator[Report | None]:
        """Perform all batches.

        Raises:
            NarrowsError: if Slurm cannot be reached, or no longer repeats a lost job.
        """
        with contextlib.ExitStack() as stack:
            if scratch is None:
                # The sweep's results are stored at a URL, so the sweep has no folder. The jobs share a folder
                # in the current folder.
                made = tempfile.TemporaryDirectory(prefix="narrows-slurm-", dir=Path.cwd())
                scratch = Path(stack.enter_context(made))
            yield from self._perform(task, batches, scratch)

    def _perform(self, task: Task, batches: Iterator[Batch], scratch: Path) -> Iterator[Report | None]:
        try:
            engine = submitit.AutoExecutor(folder=scratch / "slurm", cluster=self._cluster)
        except RuntimeError as error:
            raise _failed("Slurm that accepts jobs", error) from None
        engine.update_parameters(name="narrows", timeout_min=_LIMIT_MINUTES)
        while True:
            self._submit(engine, task, list(islice(batches, self.slots - len(self._active))))
            if not self._active:
                return
            finished = [job for job in self._active if job.done()]
            self._active = [job for job in self._active if job not in finished]
            for job in finished:
                try:
                    report: Report = job.result()
                except (FailedJobError, UncompletedJobError) as error:
                    raise _failed("result of a job", error) from None
                yield report
            if not finished:
                time.sleep(NAP_SECONDS)
                yield None

    def _submit(self, engine: Any, task: Task, batches: list[Batch]) -> None:
        """Submit batches as one job array."""
        if not batches:
            return
        try:
            with engine.batch():
                submitted = [engine.submit(task, batch) for batch in batches]
        except (FailedSubmissionError, subprocess.CalledProcessError, OSError) as error:
            # Jobs that were submitted earlier are ended by `cancel`.
            raise _failed("Slurm that accepts jobs", error) from None
        self._active += submitted

    def cancel(self) -> list[Report]:
        """Cancel all jobs."""
        for job in self._active:
            job.cancel(check=False)
        self._active = []
        return []  # workers write into the sweep's folder


def _failed(wanted: str, error: Exception) -> NarrowsError:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return NarrowsError(f"executor slurm: found no {wanted} ({one_line((lines or ['unknown reason'])[-1])})")
