"""Checks and reads files with keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from narrows.errors import NarrowsError

TOKEN_MIN_BYTES = 32
"""Smallest accepted length of a token, in bytes."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_CREDENTIALS = "CREDENTIALS_DIRECTORY"


def check_private(what: str, path: Path) -> None:
    """Checks that only the owner of a file can use it.

    Args:
        what: name of the key in the configuration.
        path: the file.

    Raises:
        NarrowsError: the file does not exist, or other users can read or write it.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise NarrowsError(f"{what}: {path}: {error.strerror}") from None
    if mode & (_OTHERS & ~stat.S_IRGRP if _is_credential(path) else _OTHERS):
        raise NarrowsError(f"{what}: {path}: found mode {mode:04o}, expected 0600: run 'chmod 600 {path}'")


def _is_credential(path: Path) -> bool:
    """Whether systemd has copied the file for this service (`LoadCredential`, systemd.exec(5)).

    On a file system with access control lists, only the service's user can read such a file. The file's mode
    nevertheless shows this permission in the bits of the group.
    """
    folder = os.environ.get(_CREDENTIALS)
    return folder is not None and path.resolve().is_relative_to(Path(folder).resolve())


def read_token(path: Path) -> str:
    """Reads a token from a file. A token has at least 64 hexadecimal digits.

    Raises:
        NarrowsError: the file cannot be read or contains no token.
    """
    expected = "expected at least 64 hexadecimal digits, e.g. from 'openssl rand -hex 32'"
    try:
        text = path.read_text(encoding="ascii").strip()
        size = len(bytes.fromhex(text))
    except OSError as error:
        raise NarrowsError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise NarrowsError(f"{path}: found other characters, {expected}") from None
    if size < TOKEN_MIN_BYTES:
        raise NarrowsError(f"{path}: found {len(text)} digits, {expected}")
    return text
