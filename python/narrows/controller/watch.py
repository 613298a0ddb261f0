"""The thread that samples the domain once a second, for the history of the ports."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from narrows.controller import sample, view
from narrows.controller.history import STEP_S, History
from narrows.controller.runtime import Runtime

LOG = logging.getLogger("narrows.controller")
INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Recording:
    """Figures of the recording itself."""

    ports: int
    left_out: int


class Watch:
    """Samples a domain. It holds the domain's lock only while it copies references.

    Args:
        runtime: the source of all data.
        now_ns: monotonic time of the start; none: now.
    """

    def __init__(self, runtime: Runtime, now_ns: int | None = None) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._history = History(time.monotonic_ns() if now_ns is None else now_ns)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join(timeout=5)

    def look(self, now_ns: int) -> None:
        """Takes one sample.

        Args:
            now_ns: monotonic time.
        """
        taken = self._runtime.look(lambda domain, _: sample.take(domain, now_ns))
        with self._lock:
            self._history.add(now_ns, taken)

    def series(self, port: str, after: int = -1) -> view.Series | None:
        """The last hour of a port, or the intervals after a number."""
        now_ns, unix_s = time.monotonic_ns(), time.time()
        with self._lock:
            found = self._history.read(port, after)
            last, end_s = self._history.number - 1, self._history.end_s(now_ns, unix_s)
        if found is None:
            return None
        first, series = found
        return view.Series(port=port, step_s=STEP_S, first=first, last=last, end_s=end_s, **series)

    def recording(self) -> Recording:
        """How many ports are recorded, and how many have no place."""
        with self._lock:
            return Recording(len(self._history), self._history.left_out)

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            try:
                self.look(time.monotonic_ns())
            except Exception:
                # A defect here must not end the recording.
                LOG.exception("cannot take a sample")
