"""Executors perform the runs of a sweep on this machine (threads, processes), on a Ray cluster, or on Slurm.

The sweep divides its runs into batches. A worker performs the runs of a batch and reports their times.
Workers in other processes write finished segments (`narrows.results.segments`), so results do not pass
through the sweep's process. An executor only brings batches to workers. An engine (a pool, Ray or Slurm)
schedules the batches, and repeats the batches of workers that died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from narrows import extras
from narrows.errors import NarrowsError, found
from narrows.plan import Plan

NAP_SECONDS = 0.2
"""After at most this time, an executor returns control to the sweep, so that the sweep can handle signals and
show progress."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run, with all data that a worker needs to perform it."""

    run: int
    """Number of the run in its sweep."""
    seed: int
    factors: Mapping[str, str | float]
    """Values of the sweep's factors."""
    plan: Plan
    """The plan for the run's point of the sweep. All runs of a point share this object, so the seed in the
    plan is ignored."""


Batch = tuple[tuple[Job, ...], ...]
"""The jobs that are given to a worker together. The jobs of each inner tuple become one segment."""


@dataclass(frozen=True)
class Report:
    """The outcome of a batch."""

    host: str
    """Name of the worker's machine."""
    seconds: Mapping[int, float]
    """Wall times of the finished runs, by number."""
    segments: Mapping[int, Mapping[str, bytes]] = field(default_factory=dict)
    """The files of the worker's segments, by number of the segment and name of the file. Empty if the worker
    wrote them into the sweep's folder."""
    error: Exception | None = None
    """The reason why a run failed (None: no run failed). After a failed run, the worker skips the rest of the
    batch."""


Task = Callable[[Batch], Report]
"""A function that performs the runs of a batch. Executors that use other processes pickle this function."""


class Executor(Protocol):
    """Brings batches to workers."""

    name: str
    """The value of `--executor`."""
    shares_memory: bool
    """Whether workers are threads of this process."""
    batch_seconds: float
    """Intended duration of a batch, long enough to make overhead negligible (0: each batch has one run)."""

    @property
    def slots(self) -> int:
        """Number of batches that can be performed at the same time, which may change during a sweep."""

    def perform(self, task: Task, batches: Iterator[Batch], scratch: Path | None) -> Iterator[Report | None]:
        """Perform all batches, and yield a report for each, in any order.

        The function takes batches from the iterator only shortly before they can be performed. It yields None
        if no batch ends within `NAP_SECONDS`.

        Args:
            task: performs the runs of a batch.
            batches: the batches.
            scratch: a folder for files of the executor. The sweep removes this folder. The value is None if
                `shares_memory` is set, or if the sweep has no folder.

        Raises:
            NarrowsError: if a worker is lost and its batch cannot be repeated.
        """

    def cancel(self) -> list[Report]:
        """End all work. After this call, `perform` yields nothing more.

        Returns the reports of batches that have finished but were not yielded, if these reports contain the
        only copy of the results.
        """


NAMES = ("local", "processes", "ray", "slurm")
"""Values of `--executor`. An address may follow `ray`."""


def named(name: str, jobs: int | None = None) -> Executor:
    """An executor by name.

    Args:
        name: one of `NAMES`, or ``ray:ADDRESS``.
        jobs: number of concurrent batches (None: the executor's default).

    Raises:
        NarrowsError: if there is no such executor.
        MissingExtraError: if its optional dependencies are not installed.
    """
    kind, colon, address = name.partition(":")
    if kind not in NAMES or (colon and (kind != "ray" or not address)):
        raise NarrowsError(
            f"executor: found {found(name)}, expected local, processes, ray, ray:ADDRESS or slurm"
        )
    if kind in ("local", "processes"):
        from narrows.executors.local import Processes, Threads  # noqa: PLC0415 (imports its engine)

        return Threads(jobs) if kind == "local" else Processes(jobs)
    extras.require(kind, f"executor {kind}")
    if kind == "ray":
        from narrows.executors.ray import Ray  # noqa: PLC0415

        return Ray(address or None, jobs)
    from narrows.executors.slurm import Slurm  # noqa: PLC0415

    return Slurm(jobs)
