"""Limits what unknown peers can use: connections by address, and lines of the log."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

_LINES, _INTERVAL_S = 10, 10.0
"""Maximum number of log lines in an interval, and the length of the interval."""


class Gate:
    """Counts connections.

    Args:
        most: largest number of connections.
        most_each: largest number of connections from one address.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._lock = threading.Lock()
        self._by_address: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Adds a connection, unless there are too many. Returns whether it was added."""
        with self._lock:
            if self._by_address.total() >= self._most or self._by_address[address] >= self._most_each:
                return False
            self._by_address[address] += 1
            return True

    def leave(self, address: str) -> None:
        """Removes a connection."""
        with self._lock:
            self._by_address[address] -= 1
            if self._by_address[address] <= 0:
                del self._by_address[address]


class _Budget:
    """Allows `_LINES` entries in `_INTERVAL_S`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since_s = -_INTERVAL_S
        self._logged = self._left_out = 0

    def take(self) -> int | None:
        """Uses up one log entry of this interval's budget.

        Returns None if the budget is used up. For the first entry of an interval, returns the number of
        entries that were refused in the previous interval. For all other entries, returns 0.
        """
        with self._lock:
            now_s = time.monotonic()
            left_out = 0
            if now_s - self._since_s >= _INTERVAL_S:
                left_out, self._left_out = self._left_out, 0
                self._since_s, self._logged = now_s, 0
            self._logged += 1
            if self._logged > _LINES:
                self._left_out += 1
                return None
            return left_out


class Warnings:
    """Logs at most `_LINES` lines in `_INTERVAL_S`, and later the number of lines that were left out."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._budget = _Budget()

    def warn(self, text: str, *values: object) -> None:
        """Logs a warning, unless there were already too many in this interval."""
        left_out = self._budget.take()
        if left_out is None:
            return
        if left_out:
            self._log.warning("%d similar warnings were left out", left_out)
        self._log.warning(text, *values)


class OneLine(logging.Filter):
    """Limits a library's log to `_LINES` entries in `_INTERVAL_S`, and replaces tracebacks by one line.

    For example, uvicorn logs a traceback if it finds an error in a request's body after the answer has begun.
    """

    def __init__(self) -> None:
        super().__init__()
        self._budget = _Budget()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the entry is logged."""
        if self._budget.take() is None:
            return False
        if record.exc_info:
            error = repr(record.exc_info[1])
            record.msg, record.args = "%s: %s", (record.getMessage().strip(), error)
            record.exc_info = record.exc_text = None
        return True
