"""The data folder: where it is, and which files of the catalogue it holds."""

from __future__ import annotations

import hashlib
import os
from enum import StrEnum
from pathlib import Path

from narrows.data.catalogue import DataFile
from narrows.errors import NarrowsError, found

VARIABLE = "NARROWS_DATA"


class State(StrEnum):
    """State of one file in the data folder."""

    PRESENT = "present"
    MISSING = "missing"
    DIFFERENT = "different checksum"


def data_folder(option: Path | None = None) -> Path:
    """The data folder, which need not exist.

    Args:
        option: value of ``--data`` (default: the variable NARROWS_DATA, else the platform's user data
            folder).
    """
    if option is not None:
        return option
    if named := os.environ.get(VARIABLE):
        return Path(named)
    import platformdirs  # noqa: PLC0415 (only for the default)

    return platformdirs.user_data_path("narrows", appauthor=False)


def existing_folder(option: Path | None) -> Path | None:
    """The value of ``--data`` for a command that reads the folder.

    Raises:
        NarrowsError: if the option names something that is not a folder.
    """
    if option is not None and not option.is_dir():
        raise NarrowsError(f"--data: found {found(str(option))}, expected a folder that exists")
    return option


def check_folder(folder: Path) -> None:
    """Check that a folder exists or can be created.

    Raises:
        NarrowsError: if this path or one of its parents exists but is not a folder.
    """
    for path in (folder, *folder.parents):
        if os.path.lexists(path) and not path.is_dir():
            raise NarrowsError(f"{path}: found a file, expected a folder")


def state(file: DataFile, folder: Path) -> State:
    """State of a file. A file without a known checksum is present if it exists."""
    path = folder / file.path
    if not path.is_file():
        return State.MISSING
    if file.sha256 and digest(path) != file.sha256:
        return State.DIFFERENT
    return State.PRESENT


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
