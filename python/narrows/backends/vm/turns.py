"""Limits the number of guests that run at the same time on this machine.

All processes share a folder of lock files. The kernel releases a lock when the process that holds it ends.

- `slot-N` is locked by a process while its guest runs.
- `ticket-...` is locked by a process that waits for a slot. Sorted by name, the tickets have the order of the
  queue.
- `door` is locked by a process while it inspects or changes slots and tickets.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from narrows import locks

_NAP_SECONDS = 0.2


@contextmanager
def turn(
    folder: Path, most: int, cancelled: threading.Event, say: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Wait until one of `most` slots is free, and lock that slot while the context lasts.

    Args:
        folder: the shared folder, created if necessary.
        most: number of slots, the same for all callers.
        cancelled: ends the wait when it is set.
        say: called with a line of text if the caller has to wait.

    Raises:
        KeyboardInterrupt: if the wait was cancelled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _ticket(folder) as ticket:
        slot = _slot(folder, ticket, most)
        if slot is None:
            say(f"{most} guests are running on this machine: waiting for one to end ...")
        while slot is None:
            if cancelled.wait(_NAP_SECONDS):
                raise KeyboardInterrupt
            slot = _slot(folder, ticket, most)
    try:
        yield
    finally:
        os.close(slot)


@contextmanager
def _ticket(folder: Path) -> Iterator[Path]:
    """Join the queue: hold a locked ticket while the context lasts."""
    with _door(folder):
        # All processes share CLOCK_MONOTONIC, and only one process at a time holds the lock `door`. The
        # names of the tickets therefore differ.
        path = folder / f"ticket-{time.monotonic_ns():020}"
        lock = _locked(path)
    try:
        yield path
    finally:
        with _door(folder):
            path.unlink(missing_ok=True)
            if lock is not None:
                os.close(lock)


def _slot(folder: Path, ticket: Path, most: int) -> int | None:
    """Lock a free slot and return its descriptor (None: no slot is free, or it is another ticket's turn)."""
    with _door(folder):
        for other in sorted(folder.glob("ticket-*")):
            if other.name >= ticket.name:
                break
            lock = _locked(other)
            if lock is None:
                return None
            other.unlink(missing_ok=True)  # its process was killed
            os.close(lock)
        slots = (_locked(folder / f"slot-{number}") for number in range(most))
        return next((slot for slot in slots if slot is not None), None)


def _door(folder: Path) -> AbstractContextManager[None]:
    return locks.held(folder / "door")


def _locked(path: Path) -> int | None:
    """Lock the file and return its descriptor (None: another process holds the lock).

    Create the file if necessary.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    if locks.take(file):
        return file
    os.close(file)
    return None
