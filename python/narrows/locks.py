"""File locks between processes. The kernel releases a lock when the process that holds it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from narrows.errors import OutputError


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a file while the context lasts.

    Create the file if necessary, and wait while another process holds the lock.
    """
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def take(file: int) -> bool:
    """Try to lock an open file. Returns false if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def claim(folder: Path) -> int:
    """Lock a folder, so that this process alone writes to it.

    Returns an open descriptor, which holds the lock until it is closed. On a file system without locks,
    nothing is locked.

    Raises:
        OutputError: if another process has locked it.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        is_free = take(held)
    except OSError:
        return held  # this file system has no locks
    if not is_free:
        os.close(held)
        raise OutputError(f"{folder}: another run is writing there")
    return held
