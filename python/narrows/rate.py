"""The catalogue of rate controllers, as the native module has it: names and parameters.

Nothing is imported before the first use, because the native module takes long to load.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

from narrows.parameters import Parameter, Value, by_name, in_base_units


@dataclass(frozen=True, slots=True)
class RateController:
    """A row of the catalogue."""

    name: str
    summary: str
    signal_on_switches: str | None
    """The value of its parameter ``signal`` with which real switches and stock hosts can use it.

    It is empty if the rate controller has no such parameter, and None if they cannot use it.
    """
    parameters: Mapping[str, Parameter]
    literal: Mapping[str, Value]
    """Defaults with ``mode = "literal"`` that differ from those without a mode, in base units."""

    def base(self, given: Mapping[str, object], key: str = "params") -> dict[str, Value]:
        """A scenario's parameters in base units.

        Raises:
            ScenarioError: for an unknown parameter, or a value of another kind or outside the range.
        """
        return in_base_units(given, self.parameters, self.name, key)


@functools.cache
def catalogue() -> Mapping[str, RateController]:
    """All rate controllers by name."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    rows = json.loads(_native.rate_catalogue())
    return {row["name"]: RateController(**{**row, "parameters": by_name(row["parameters"])}) for row in rows}


def on_switches() -> dict[str, str]:
    """The rate controllers that real switches support, and the value of their parameter ``signal``.

    It is empty if they have no such parameter.
    """
    rows = catalogue().values()
    return {row.name: row.signal_on_switches for row in rows if row.signal_on_switches is not None}
