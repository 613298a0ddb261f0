"""Results of real stacks in a cell, from a folder of runs (`kept.py`) or a recording (`recording.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from narrows.validate.measures import Side
from narrows.validate.place import Place


@dataclass(frozen=True)
class Evidence:
    """Runs of a cell for an algorithm on real stacks."""

    sides: dict[str, Side]
    """Flows by name, of the runs that were sound."""
    disturbed: dict[str, Side] = field(default_factory=dict)
    """... and of those that were not."""
    seeds: tuple[int, ...] = ()
    """Seeds of all runs."""
    unsound: int = 0
    """How many runs were disturbed."""
    reasons: tuple[str, ...] = ()
    """... by what."""
    kernels: frozenset[str] = frozenset()
    """Versions that were measured."""
    days: frozenset[str] = frozenset()
    """Dates of the measurements, ISO 8601."""

    @property
    def verdict(self) -> str:
        """Why there is nothing that counts, where all runs were disturbed."""
        which = f"all {self.unsound} runs were" if self.unsound > 1 else "its only run was"
        return f"{which} disturbed" + (f": {'; '.join(self.reasons)}" if self.reasons else "")


class Source(Protocol):
    """Where evidence is kept."""

    def evidence(self, place: Place) -> Evidence | None:
        """Runs of the very scenario that the cell has now; None without any."""
