"""The native module's catalogue of rate controllers: their names and parameters.

Nothing is imported before the first use, because the native module takes long to load.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

from narrows.parameters import Parameter, Value, by_name


@dataclass(frozen=True, slots=True)
class RateController:
    """A row of the catalogue."""

    name: str
    summary: str
    on_switches: Mapping[str, Value] | None
    """The parameters with which real switches and unmodified hosts can use this rate controller. None if real
    switches do not support it."""
    parameters: Mapping[str, Parameter]
    literal: Mapping[str, Value]
    """The defaults that ``mode = "literal"`` changes, with their values in this mode (in base units)."""


@functools.cache
def catalogue() -> Mapping[str, RateController]:
    """All rate controllers by name."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    rows = json.loads(_native.rate_catalogue())
    return {row["name"]: RateController(**{**row, "parameters": by_name(row["parameters"])}) for row in rows}


def on_switches() -> dict[str, Mapping[str, Value]]:
    """The rate controllers that real switches support, and the parameters that they need there."""
    return {row.name: row.on_switches for row in catalogue().values() if row.on_switches is not None}
