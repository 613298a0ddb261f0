"""Locks between processes: on files, and gone with the process that holds them."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Wait until nobody else holds the file, which is made if it is not there, and hold it meanwhile."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def take(file: int) -> bool:
    """Whether nobody else has a lock on an open file; it is locked then."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
