"""The findings of a soak."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field

from fairness import Figures
from machine import Inventory


@dataclass
class Result:
    """Counts, figures and failed checks."""

    seconds: float = 0.0
    """Time under load."""
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    inventories: dict[str, Inventory] = field(default_factory=dict)
    """Numbers of objects by phase: `before`, `idle`, `after`, `end`."""
    connections: Counter[str] = field(default_factory=Counter)
    """Number of connections by outcome: `long`, `short`, `broken`, `refused`."""
    forged: Counter[str] = field(default_factory=Counter)
    """Forged packets by kind."""
    switch: Counter[str] = field(default_factory=Counter)
    """Counters of the controlled port since the switch's data plane was last loaded."""

    def fail(self, text: str) -> None:
        """Adds a failure."""
        self.failures.append(text)
        print(f"soak: {text}", file=sys.stderr, flush=True)
