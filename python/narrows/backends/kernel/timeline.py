"""Runs functions in threads. The functions do their work at planned times of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from narrows.units import NANOS_PER_SEC


class Timeline:
    """The time of a run, for threads that work while it lasts.

    Args:
        start: start of the run, ns of CLOCK_MONOTONIC.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self._over.is_set()

    def wait_until(self, when: int) -> bool:
        """Wait until `when`, in ns after the start of the run. Returns false if the run ends earlier."""
        left = self._start + when - time.monotonic_ns()
        return not self._over.wait(max(0.0, left / NANOS_PER_SEC))

    def pause(self, seconds: float) -> None:
        """Wait for this many seconds. If the run ends earlier, return at its end."""
        self._over.wait(seconds)

    @contextmanager
    def working(self, *works: Callable[[Timeline], None]) -> Iterator[None]:
        """Run each function in a thread. When the context ends, `is_over` becomes true."""
        threads = [threading.Thread(target=work, args=(self,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
