"""The executor on a Ray cluster, which exists already or is started on this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from narrows.errors import NarrowsError, one_line
from narrows.executors import NAP_SECONDS, Batch, Report, Task
from narrows.results import segments

_AHEAD = 2
"""Number of batches that are given to Ray for each CPU. The number is above one, so that a worker need not
wait for its next batch."""
_COUNT_SECONDS = 1.0
"""Time after which the CPUs of the cluster are counted again, because nodes may join or leave."""
_REACH_SECONDS = 10.0
"""Maximum time to wait for a connection to a cluster."""
_END_SECONDS = 10.0
"""Maximum time to wait for the end of cancelled workers."""


class Ray:
    """Performs batches in workers of a Ray cluster.

    Each worker uses one CPU. Ray repeats the batches of lost workers.

    Args:
        address: address of the cluster (None: RAY_ADDRESS, a cluster on this machine, or a new cluster).
        jobs: number of concurrent batches (None: one for each CPU of the cluster).

    Raises:
        NarrowsError: if the cluster cannot be reached.
    """

    shares_memory = False
    batch_seconds = segments.WAIT_SECONDS

    def __init__(self, address: str | None = None, jobs: int | None = None) -> None:
        self.name = "ray" if address is None else f"ray:{address}"
        self._jobs = jobs
        self._active: list[Any] = []
        self._waiting: list[Any] = []
        """Batches that have ended but were not yielded yet."""
        self._cpus, self._counted = 1, -_COUNT_SECONDS
        if ray.is_initialized():
            return
        # If this call starts a cluster, the cluster must not report usage data to Ray's developers.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            _reach(address)
            ray.init(address, log_to_driver=False, logging_level="ERROR", include_dashboard=None)
        except (RayError, OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or one_line(str(error).strip().splitlines()[0])
            raise NarrowsError(f"executor {self.name}: found no cluster ({reason})") from None

    @property
    def slots(self) -> int:
        """Number of concurrent batches: the requested jobs or, by default, the CPUs of the cluster."""
        if self._jobs is not None:
            return self._jobs
        if time.monotonic() - self._counted >= _COUNT_SECONDS:
            self._cpus = max(1, int(ray.cluster_resources().get("CPU", 0)))
            self._counted = time.monotonic()
        return self._cpus

    def perform(
        self,
        task: Task,
        batches: Iterator[Batch],
        scratch: Path | None,  # noqa: ARG002 (protocol)
    ) -> Iterator[Report | None]:
        """Perform all batches.

        Raises:
            NarrowsError: if a batch was lost and Ray has given up repeating it.
        """
        make = ray.remote(_make)
        shared = ray.put(task)
        while True:
            most = self.slots * (1 if self._jobs is not None else _AHEAD)
            for batch in islice(batches, max(0, most - len(self._active))):
                self._active.append(make.remote(shared, batch))
            if not self._active:
                return
            finished, _ = ray.wait(self._active, num_returns=1, timeout=NAP_SECONDS)
            if finished:
                finished, self._active = ray.wait(self._active, num_returns=len(self._active), timeout=0)
            for number, reference in enumerate(finished, 1):
                self._waiting = finished[number:]
                yield self._report(reference)
            if not finished:
                yield None

    def _report(self, reference: Any) -> Report:
        try:
            report: Report = ray.get(reference)
        except RayError as error:
            reason = one_line((str(error).strip().splitlines() or [type(error).__name__])[-1])
            raise NarrowsError(f"executor {self.name}: found a lost batch ({reason})") from None
        return report

    def cancel(self) -> list[Report]:
        """End the active workers. Returns the reports of batches that have ended but were not yielded."""
        reports = []
        for reference in self._waiting:
            with contextlib.suppress(NarrowsError):
                reports.append(self._report(reference))
        self._waiting = []
        for reference in self._active:
            ray.cancel(reference, force=True)
        if self._active:
            ray.wait(self._active, num_returns=len(self._active), timeout=_END_SECONDS)
        self._active = []
        return reports


def _reach(address: str | None) -> None:
    """Try to connect to HOST:PORT, because Ray itself would wait for minutes if nothing listens there.

    Raises:
        OSError: if nothing listens there.
    """
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()


def _make(task: Task, batch: Batch) -> Report:
    return task(batch)
