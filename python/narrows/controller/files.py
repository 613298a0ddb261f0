"""Files with keys."""

from __future__ import annotations

import stat
from pathlib import Path

from narrows.errors import NarrowsError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_private(what: str, path: Path) -> None:
    """Checks that only its owner can use a file.

    Args:
        what: name of the key in the configuration.
        path: the file.

    Raises:
        NarrowsError: the file does not exist, or others can read or write it.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise NarrowsError(f"{what}: {path}: {error.strerror}") from None
    if mode & _OTHERS:
        raise NarrowsError(f"{what}: {path}: found mode {mode:04o}, expected 0600: run 'chmod 600 {path}'")
