"""Executors on this machine, which use threads or (for runs that hold the interpreter's lock) processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path

from narrows.errors import NarrowsError
from narrows.executors import NAP_SECONDS, Batch, Report, Task
from narrows.results import segments


def cores() -> int:
    """The number of cores of this machine."""
    return os.cpu_count() or 1


class Threads:
    """Performs batches in threads of this process.

    Batches run in parallel, because the simulator releases the interpreter's lock.
    """

    name = "local"
    shares_memory = True
    batch_seconds = 0.0

    def __init__(self, jobs: int | None = None) -> None:
        self.slots = jobs or cores()
        self._pool: futures.Executor | None = None

    def perform(
        self,
        task: Task,
        batches: Iterator[Batch],
        scratch: Path | None,  # noqa: ARG002 (protocol)
    ) -> Iterator[Report | None]:
        """Perform all batches."""
        self._pool = futures.ThreadPoolExecutor(self.slots, thread_name_prefix="narrows")
        yield from _reports(self._pool, task, batches, self.slots)
        self._pool.shutdown()

    def cancel(self) -> list[Report]:
        """Wait for the end of the runs, which the sweep has already cancelled in the backend."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        return []


class Processes:
    """Performs batches in processes, e.g. for controllers in Python, which hold the interpreter's lock.

    Each process is a new interpreter that imports the main module. A script must therefore start its sweep
    under ``if __name__ == "__main__"``.
    """

    name = "processes"
    shares_memory = False
    batch_seconds = segments.WAIT_SECONDS

    def __init__(self, jobs: int | None = None) -> None:
        self.slots = jobs or cores()
        self._pool: futures.Executor | None = None
        self._alive: Connection | None = None

    def perform(
        self,
        task: Task,
        batches: Iterator[Batch],
        scratch: Path | None,  # noqa: ARG002 (protocol)
    ) -> Iterator[Report | None]:
        """Perform all batches.

        Raises:
            NarrowsError: if a process dies, e.g. because memory is exhausted.
        """
        context = multiprocessing.get_context("spawn")
        watched, self._alive = context.Pipe(duplex=False)
        self._pool = futures.ProcessPoolExecutor(
            self.slots, mp_context=context, initializer=_begin, initargs=(watched,)
        )
        try:
            yield from _reports(self._pool, task, batches, self.slots)
        except BrokenProcessPool:
            raise NarrowsError(
                "executor processes: found a worker that died, e.g. because memory is exhausted"
            ) from None
        self._pool.shutdown()

    def cancel(self) -> list[Report]:
        """End the processes, even in the middle of a run."""
        if self._alive is not None and self._pool is not None:
            self._alive.close()
            self._pool.shutdown(wait=True, cancel_futures=True)
        return []  # workers write into the sweep's folder


def _begin(watched: Connection) -> None:
    """Prepare a worker. The worker ends when the sweep's process dies or closes the other end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the sweep handles SIGINT for its workers

    def watch() -> None:
        watched.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _reports(
    pool: futures.Executor, task: Task, batches: Iterator[Batch], most: int
) -> Iterator[Report | None]:
    """Perform batches in a pool, at most `most` at a time.

    Meanwhile, further batches stay in the iterator.
    """
    active: set[futures.Future[Report]] = set()
    while True:
        active |= {pool.submit(task, batch) for batch in islice(batches, most - len(active))}
        if not active:
            return
        # Poll, because Ctrl-C sometimes does not wake this thread while another thread starts a program (in 1
        # of 12 tries).
        finished, active = futures.wait(active, NAP_SECONDS, futures.FIRST_COMPLETED)
        for future in finished:
            yield future.result()
        if not finished:
            yield None
