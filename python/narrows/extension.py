"""Loads a native module with additional congestion controllers from the path in `NARROWS_NATIVE`.

The folder `examples/own-controller` of the repository has such a module.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from narrows.errors import NarrowsError
from narrows.version import release

VARIABLE = "NARROWS_NATIVE"
NAME = "narrows._native"


def use() -> None:
    """Make Python import `narrows._native` from the variable's path.

    The path in the variable becomes absolute, because workers may run in another folder.
    """
    file = Path(os.environ[VARIABLE]).absolute()
    os.environ[VARIABLE] = str(file)
    sys.meta_path.insert(0, _Finder(file))


def file() -> Path | None:
    """The module's file; None for the package's own module."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else None


def digest() -> str | None:
    """SHA-256 of the module's file as hexadecimal digits; None for the package's own module."""
    own = file()
    return None if own is None else hashlib.sha256(own.read_bytes()).hexdigest()


class _Loader(ExtensionFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            return super().create_module(spec)
        except ImportError as error:
            trouble = str(error).removeprefix(f"{self.path}: ")  # the linker puts the path first
            raise NarrowsError(f"{VARIABLE}: {self.path}: {trouble}") from None

    def exec_module(self, module: ModuleType) -> None:
        try:
            super().exec_module(module)
        except (ImportError, ValueError) as error:
            raise NarrowsError(f"{VARIABLE}: {self.path}: {error}") from None
        found, expected = getattr(module, "version", "unknown"), release()
        if found != expected:
            raise NarrowsError(f"{VARIABLE}: {self.path}: found version {found}, expected {expected}")


class _Finder(MetaPathFinder):
    """Finds `narrows._native` in a file.

    Args:
        file: the shared library that cargo has built.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (the interface of importlib)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The import specification of `narrows._native`; None for any other module.

        Raises:
            NarrowsError: if there is no such file. Loading the module also raises `NarrowsError`, if the file
                is not the native module or has another version.
        """
        if fullname != NAME:
            return None
        if not self._file.is_file():
            raise NarrowsError(f"{VARIABLE}: found no file {self._file}, expected a native module")
        return spec_from_file_location(NAME, self._file, loader=_Loader(NAME, str(self._file)))
