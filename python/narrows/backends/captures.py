"""The folder of a run's captured packets."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from narrows.errors import OutputError


@contextmanager
def kept_folder() -> Iterator[Path]:
    """Yield a temporary folder for the files of a capture. If the run fails, the folder is removed.

    Raises:
        OutputError: if the folder cannot be created.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="narrows-capture-"))
    except OSError as error:
        raise not_written(tempfile.gettempdir(), reason_of(error)) from None
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def not_written(path: str | Path, reason: str) -> OutputError:
    """The error about a capture that cannot be written."""
    return OutputError(f"{path}: cannot write a capture ({reason})")


def reason_of(error: OSError) -> str:
    """The reason of an error, in the words of the system."""
    return os.strerror(error.errno) if error.errno else str(error)
