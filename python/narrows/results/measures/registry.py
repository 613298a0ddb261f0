"""The registry of measures.

A measure has a name, a unit, a definition in `narrows.metrics`, and a function of a run.

The function also takes keyword arguments, which a study's TOML file can set. A new study adds a measure here
only if no existing measure fits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from narrows.errors import NarrowsError, ScenarioError, choice, hint, one_line
from narrows.results.runs import Run


@dataclass(frozen=True, slots=True)
class Measured:
    """A value in the measure's unit. If `censored` is set, the value is a lower bound."""

    value: float
    censored: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """A registered measure."""

    name: str
    title: str
    unit: str
    source: str
    """Rule id of the measure's definition: MET-n of docs/reference/metrics.md."""
    function: Callable[..., float | Measured]

    def check(self, args: Mapping[str, Any]) -> None:
        """Check the names of arguments, and the values of arguments that have a fixed set of values.

        Raises:
            ScenarioError: for an unknown or a missing argument, or a wrong value. The key of the error is the
                argument's name.
        """
        given, known = list(args), _parameters(self.function)
        for name in given:
            if name not in known:
                raise ScenarioError(f"found an unknown argument of {self.name}{hint(name, known)}", name)
        for name, is_needed in known.items():
            if is_needed and name not in given:
                raise ScenarioError(f"found nothing, expected this argument of {self.name}", name)
        for name, values in _values(self.function).items():
            if name in args and args[name] not in values:
                raise ScenarioError(choice(args[name], values), name)


@cache
def _parameters(function: Callable[..., float | Measured]) -> dict[str, bool]:
    """The arguments of a measure's function, except the run, and whether each argument is required."""
    _, *parameters = inspect.signature(function).parameters.values()
    return {parameter.name: parameter.default is parameter.empty for parameter in parameters}


@cache
def _values(function: Callable[..., float | Measured]) -> dict[str, tuple[str, ...]]:
    """The possible values of each argument whose type is a `Literal`."""
    hints = get_type_hints(function)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


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
    """The measure with this name.

    Raises:
        NarrowsError: if no measure has this name.
    """
    if name not in MEASURES:
        raise NarrowsError(f"found no measure {name!r}{hint(name, MEASURES)}")
    return MEASURES[name]


def arguments(of: Measure) -> dict[str, bool]:
    """The names of a measure's arguments, and whether each is required."""
    return _parameters(of.function)


def choices(of: Measure) -> dict[str, tuple[str, ...]]:
    """The possible values of each argument that has a fixed set of values."""
    return _values(of.function)


def measure_run(name: str, run: Run, **args: Any) -> Measured:
    """The value of a measure for one run. It is computed once and kept with the run.

    Raises:
        NarrowsError: for an unknown measure, a wrong argument, or a table or column that the run lacks.
    """
    chosen = find_measure(name)
    key = (name, repr(sorted(args.items())))
    if key not in run.measured:
        try:
            chosen.check(args)
            result = chosen.function(run, **args)
        except (ScenarioError, TypeError) as error:
            raise NarrowsError(f"measure {name}: {error}") from None
        except (ArithmeticError, LookupError, ValueError) as error:
            given = ", ".join(f"{key}={value}" for key, value in args.items()) or "no arguments"
            reason = one_line(f"{type(error).__name__}: {error}")
            raise NarrowsError(f"measure {name}: found {given}, which it cannot use ({reason})") from None
        run.measured[key] = result if isinstance(result, Measured) else Measured(float(result))
    value: Measured = run.measured[key]
    return value
