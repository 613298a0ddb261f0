"""The registry of measures: a name, a unit, a definition in `narrows.metrics`, and a function of a run.

The function also takes keyword arguments from a study's TOML. A new study adds a measure here only if no
existing one fits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from narrows.errors import NarrowsError, hint
from narrows.results.runs import Run


@dataclass(frozen=True, slots=True)
class Measured:
    """A value in the measure's unit. If it is censored, it is a lower bound."""

    value: float
    censored: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """A registered measure."""

    name: str
    title: str
    unit: str
    source: str
    """Rule id of its definition: MET-n of docs/reference/results.md."""
    function: Callable[..., float | Measured]


MEASURES: dict[str, Measure] = {}

_Function = Callable[..., float | Measured]


def measure(title: str, unit: str, source: str) -> Callable[[_Function], _Function]:
    """A decorator that registers a function as a measure, under the function's name."""

    def register(function: _Function) -> _Function:
        name = function.__name__
        MEASURES[name] = Measure(name, title, unit, source, function)
        return function

    return register


def find_measure(name: str) -> Measure:
    """The measure with this name."""
    if name not in MEASURES:
        raise NarrowsError(f"no measure {name!r}{hint(name, MEASURES)}")
    return MEASURES[name]


def arguments(of: Measure) -> dict[str, bool]:
    """The names of a measure's arguments, and whether each is required."""
    parameters = list(inspect.signature(of.function).parameters.values())[1:]
    return {parameter.name: parameter.default is parameter.empty for parameter in parameters}


def unfit(of: Measure, args: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first wrong or missing argument of a measure: its name and the message. None if all fit."""
    known = arguments(of)
    for name in args:
        if name not in known:
            return name, f"found an unknown argument of {of.name}{hint(name, known)}"
    for name, is_required in known.items():
        if is_required and name not in args:
            return name, f"found nothing, expected this argument of {of.name}"
    return None


def measure_run(name: str, run: Run, **args: Any) -> Measured:
    """The value of a measure for one run."""
    chosen = find_measure(name)
    try:
        result = chosen.function(run, **args)
    except TypeError as error:
        raise NarrowsError(f"measure {name}: {error}") from None
    return result if isinstance(result, Measured) else Measured(float(result))
