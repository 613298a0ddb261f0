"""Turns of guests: so many at a time on this machine, by locks that vanish with their process.

In a folder that all callers share: `slot-N`, locked by who has a guest at work; `ticket-...`, each locked by
who waits for a slot, in the order of their names; `door`, locked while somebody looks at the others.
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
    """Wait until fewer than `most` others are at work, then be one of them while the context lasts.

    Args:
        folder: what is shared, made if it is not there.
        most: slots; all callers should say the same.
        cancelled: ends the waiting.
        say: told in a line if there is a wait.

    Raises:
        KeyboardInterrupt: if it was cancelled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _ticket(folder) as ticket:
        slot = _slot(folder, ticket, most)
        if slot is None:
            say(f"{most} guests are at work on this machine: waiting for one to end ...")
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
    """A place in the queue: a locked file."""
    with _door(folder):
        # CLOCK_MONOTONIC is the same for all processes; within the door no two callers have the same time.
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
    """A locked slot, if one is free and nobody waits who came before."""
    with _door(folder):
        for other in sorted(folder.glob("ticket-*")):
            if other.name >= ticket.name:
                break
            lock = _locked(other)
            if lock is None:
                return None
            other.unlink(missing_ok=True)  # of who was killed
            os.close(lock)
        slots = (_locked(folder / f"slot-{number}") for number in range(most))
        return next((slot for slot in slots if slot is not None), None)


def _door(folder: Path) -> AbstractContextManager[None]:
    return locks.held(folder / "door")


def _locked(path: Path) -> int | None:
    """The file's descriptor with a lock on it, or None if somebody else has that; made if it is not there."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    if locks.take(file):
        return file
    os.close(file)
    return None
