"""A cell (a network of the grid) with an algorithm, and the paths of its files in a validation's folder.

OUT/scenarios/<algorithm>/<cell>.toml   the scenario of all runs, also for `narrows run`
OUT/sim/<algorithm>/<cell>              tables of the simulation
OUT/<backend>/<algorithm>/<cell>        tables of the runs on real stacks (`kept.py`)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.results.tables import cannot_write
from narrows.scenario.load import loads
from narrows.scenario.model import Scenario
from narrows.validate import grid
from narrows.validate.grid import Cell


@dataclass(frozen=True)
class Place:
    """A cell with an algorithm."""

    out: Path
    algorithm: str
    cell: Cell
    duration: str

    @property
    def name(self) -> str:
        """Algorithm and cell as one name."""
        return f"{self.algorithm}/{self.cell.name}"

    def folder(self, side: str, first: int = 0) -> Path:
        """Folder of the cell's results from the simulator or a backend.

        `first` is the number of earlier runs.
        """
        return self.out / side / self.algorithm / (f"{self.cell.name}.{first}" if first else self.cell.name)

    def scenario(self, runs: int, first: int = 0) -> Scenario:
        """Write the cell's scenario file, and return the scenario with `runs` seeds.

        `first`: number of earlier runs.
        """
        path = self.out / "scenarios" / self.algorithm / f"{self.cell.name}.toml"
        text = grid.scenario(self.cell, self.algorithm, self.duration)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise cannot_write(path, error) from None
        return loads(text, str(path), {"sweep.seeds": runs, "seed": 1 + first})
