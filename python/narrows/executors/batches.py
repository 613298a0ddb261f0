"""Divides the runs of a sweep into batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from narrows.executors import Batch, Executor, Job, Report
from narrows.results import segments

_SHARE = 3
"""A batch has at most 1 / (_SHARE x slots) of the remaining runs, so that all slots finish their last batches
at about the same time."""


class Batches(Iterator[Batch]):
    """An iterator of batches whose lengths depend on the durations of earlier runs.

    The first batches have one run each, because nothing is known yet about the duration of runs.

    Args:
        jobs: the runs.
        count: number of runs.
        executor: the executor that performs the batches.
        segment_seconds: intended total wall time of the runs of a segment.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        count: int,
        executor: Executor,
        segment_seconds: float = segments.WAIT_SECONDS,
    ) -> None:
        self._segment_seconds = segment_seconds
        self._jobs, self._left, self._executor = iter(jobs), count, executor
        self._runs, self._seconds = 0.0, 0.0

    def learn(self, report: Report) -> None:
        """Record the durations of a batch's runs.

        With each new batch, the weight of all earlier batches is halved, because durations change when the
        sweep goes from one point to the next.
        """
        self._runs = self._runs / 2 + len(report.seconds)
        self._seconds = self._seconds / 2 + sum(report.seconds.values())

    def __next__(self) -> Batch:
        each, runs = self._lengths()
        taken = list(islice(self._jobs, runs))
        if not taken:
            raise StopIteration
        self._left -= len(taken)
        return tuple(tuple(taken[at : at + each]) for at in range(0, len(taken), each))

    def _lengths(self) -> tuple[int, int]:
        """The number of runs in each segment, and the number of runs in the next batch."""
        if not self._executor.batch_seconds or not self._runs:
            return 1, 1
        pace = max(self._seconds / self._runs, 1e-6)
        fair = math.ceil(self._left / (_SHARE * self._executor.slots))
        each = max(1, int(self._segment_seconds / pace))
        batch_seconds = max(self._executor.batch_seconds, self._segment_seconds)
        runs = min(max(1, int(batch_seconds / pace)), max(1, fair))
        return min(each, runs), runs
