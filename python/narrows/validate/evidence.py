"""Results of real stacks in a cell, from a folder of runs (`kept.py`) or a recording (`recording.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from narrows.validate.measures import Side
from narrows.validate.place import Place


@dataclass(frozen=True)
class Evidence:
    """The runs of one cell with one algorithm on real stacks."""

    sides: dict[str, Side]
    """Flows of the sound runs, by name."""
    disturbed: dict[str, Side] = field(default_factory=dict)
    """Flows of the disturbed runs, by name."""
    seeds: tuple[int, ...] = ()
    """Seeds of all runs."""
    unsound: int = 0
    """Number of disturbed runs."""
    reasons: tuple[str, ...] = ()
    """Reasons why runs were disturbed."""
    kernels: frozenset[str] = frozenset()
    """Versions of the measured kernels."""
    days: frozenset[str] = frozenset()
    """Dates of the measurements, ISO 8601."""

    @property
    def verdict(self) -> str:
        """The reason why a cell has no figures, if all its runs were disturbed."""
        which = f"all {self.unsound} runs were" if self.unsound > 1 else "its only run was"
        return f"{which} disturbed" + (f": {'; '.join(self.reasons)}" if self.reasons else "")


class Source(Protocol):
    """A source of evidence."""

    def evidence(self, place: Place) -> Evidence | None:
        """The runs of the cell's current scenario; None if there are none."""
