"""The planted changes of `mutations.toml`."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = Path("crates/narrows-control/src/congestion")
"""Folder of the sources, relative to the repository."""
_LIST = Path(__file__).with_name("mutations.toml")


@dataclass(frozen=True)
class Mutation:
    """A replacement of one text in the sources."""

    id: str
    file: str
    old: str
    new: str
    why: str

    @property
    def digest(self) -> str:
        """The id and a hash of this change. They name the engine that contains it."""
        content = "\n".join((self.file, self.old, self.new))
        return f"{self.id}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def read_all() -> list[Mutation]:
    """All mutations, in the order of the file."""
    return [Mutation(**entry) for entry in tomllib.loads(_LIST.read_text(encoding="utf-8"))["mutation"]]


def apply(source: str, mutation: Mutation) -> str:
    """The source with the change.

    Raises:
        ValueError: if the old text does not occur exactly once.
    """
    if (count := source.count(mutation.old)) != 1:
        raise ValueError(f"{mutation.id}: {mutation.file}: found the old text {count} times, expected once")
    return source.replace(mutation.old, mutation.new)
