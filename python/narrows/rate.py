"""The native module's catalogue of rate controllers: their names and parameters.

Nothing is imported before the first use, because the native module takes long to load.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from narrows.parameters import Parameter, Value, by_name


@dataclass(frozen=True, slots=True)
class RateController:
    """A row of the catalogue."""

    name: str
    summary: str
    on_switches: Sequence[Mapping[str, Value]]
    """Alternative sets of parameters. Real switches support this rate controller only with one of these sets.
    With the first set, switches write rates into ACKs. Empty if real switches do not support this rate
    controller."""
    parameters: Mapping[str, Parameter]
    literal: Mapping[str, Value]
    """The defaults that ``mode = "literal"`` changes, with their values in this mode (in base units)."""


@functools.cache
def catalogue() -> Mapping[str, RateController]:
    """All rate controllers by name."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    rows = json.loads(_native.rate_catalogue())
    return {row["name"]: RateController(**{**row, "parameters": by_name(row["parameters"])}) for row in rows}


def on_switches() -> dict[str, Sequence[Mapping[str, Value]]]:
    """The rate controllers that real switches support, each with its alternative sets of parameters."""
    return {row.name: row.on_switches for row in catalogue().values() if row.on_switches}
