"""Reads scenarios from TOML, and expands a sweep into runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows import _native, retired
from narrows.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a sweep."""

    id: int
    """Number of the run, from 0."""
    point: Scenario
    """The scenario of the run's point, without a sweep. Its seed is the seed of the first run at this
    point."""
    seed: int
    """Seed of the run."""
    factors: dict[str, str | float] = field(default_factory=dict)
    """Values of the sweep's factors: ``case`` and the keys of `sweep.vary`."""

    @property
    def scenario(self) -> Scenario:
        """The scenario of this run, without a sweep. It is made on demand, because sweeps have many runs."""
        return self.point.with_seed(self.seed)


def load(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        path: a TOML file.
        overrides: values that replace the file's values, by dotted key, e.g. ``{"topology.rate": "20mbit"}``.

    Raises:
        ScenarioError: one line that names file, key, what was found and what was expected.
    """
    return _reported(_native.Scenario.load(str(path), [*(overrides or {}).items()]))


def loads(text: str, source: str = "scenario", overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Reads a scenario from a string.

    Args:
        text: TOML.
        source: path of the file with this text. Errors name this path. The stem of the path is the default of
            `name`. Paths of traces are relative to the file's folder.
        overrides: values by dotted key.

    Raises:
        ScenarioError: one line, as for `load`.
    """
    return _reported(_native.Scenario.parse(text, source, [*(overrides or {}).items()]))


def _reported(checked: _native.Scenario) -> Scenario:
    """Report the old names in a scenario, and return the scenario."""
    for old, new in checked.renamed:
        retired.report(checked.source, old, new)
    return Scenario.of(checked)


def parse_override(text: str) -> tuple[str, Any]:
    """Parse ``key=value`` of a command line. The value is TOML, or a string without quotes.

    Raises:
        ScenarioError: if there is no ``=``.
    """
    return _native.scenario_parse_override(text)


def override(data: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key in place.

    Parts of the key are names of tables. A part that contains dots is in quotes, as in TOML. For a list of
    tables, a part is the number or name of an entry, or ``*`` for all entries. The name of a flow is its name
    in results, e.g. ``bbr`` for a BBR flow whose name is not set.

    Raises:
        ScenarioError: if the key is not a dotted key, or leads to a table or entry that does not exist.
    """
    changed = _native.scenario_override(data, key, value)
    data.clear()
    data.update(changed)


def expand(scenario: Scenario, seeds: int | None = None) -> list[Run]:
    """The runs of a scenario: each case, with each combination of the varied values, with each seed.

    Args:
        scenario: the scenario, with or without a sweep.
        seeds: number of seeds (None: the number in the scenario's sweep).

    Raises:
        ScenarioError: if a variation is not valid, if there are too many runs, or if a seed is too large.
    """
    points, count = scenario.checked.expand(seeds)
    runs: list[Run] = []
    for checked, factors in points:
        point = Scenario.of(checked)
        first = point.seed
        runs += [Run(len(runs) + i, point, first + i, factors) for i in range(count)]
    return runs
