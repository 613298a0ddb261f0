"""Causes of large errors: `causes.toml`, looked up by patterns."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from narrows.errors import NarrowsError
from narrows.validate.runner import Finding

FILE = Path(__file__).with_name("causes.toml")
_KEYS = ("algorithm", "cell", "flow", "figure")


@dataclass(frozen=True)
class Cause:
    """An explanation of large errors."""

    cause: str
    known: str
    """Evidence for the explanation."""
    algorithm: str = "*"
    cell: str = "*"
    flow: str = "*"
    figure: str = "*"

    def explains(self, finding: Finding, figure: str) -> bool:
        """Whether this cause explains the error."""
        values = (finding.algorithm, finding.cell.name, finding.flow, figure)
        return all(fnmatchcase(value, getattr(self, key)) for key, value in zip(_KEYS, values, strict=True))


def read(path: Path = FILE) -> list[Cause]:
    """The entries of `causes.toml`.

    Raises:
        NarrowsError: if an entry has unknown keys, or lacks `cause` or `known`.
    """
    found = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("causes", []):
        try:
            found.append(Cause(**entry))
        except TypeError:
            raise NarrowsError(
                f"{path}: found keys {', '.join(entry)}, expected cause, known, and any of {', '.join(_KEYS)}"
            ) from None
    return found


def find(causes: list[Cause], finding: Finding, figure: str) -> Cause | None:
    """The first cause that explains an error."""
    return next((cause for cause in causes if cause.explains(finding, figure)), None)
