"""Parameters of congestion controllers and rate controllers, from the native module's catalogues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from narrows.errors import Expected, ScenarioError, found, hint

NONE = "none"
"""Value of an optional parameter. Depending on the parameter, this value means "no limit", "not used" or "as
another parameter says"."""

Value = bool | int | float | str
"""A parameter's value: as a scenario gives it, or converted to base units (ns, bytes/s)."""


@dataclass(frozen=True, slots=True)
class Module:
    """The parameter of a Linux kernel module that corresponds to a parameter of an algorithm in Narrows."""

    parameter: str
    """Name of the parameter's file in ``/sys/module/MODULE/parameters``."""
    factor: float = 0.0
    """The kernel module's value is a whole number: the value in base units times this factor."""
    words: Mapping[str, int] | None = None
    """For a parameter whose values are words, the kernel module's number for each word; else None."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an algorithm."""

    name: str
    kind: Literal["flag", "word", "text", "contents", "whole", "number", "time", "rate"]
    min: float | None
    max: float | None
    """Smallest and largest value, in base units. If the value is the contents of a file, `max` is the largest
    number of bytes."""
    words: tuple[str, ...]
    optional: bool
    """Whether the value may be `NONE`."""
    unit: str
    default: Value
    """Default value, in base units."""
    default_text: str
    """The default value as a scenario would write it, but without quotes."""
    expected: str
    """The text after "expected" in error messages: kind and range of the value."""
    meaning: str
    source: str
    module: Module | None

    def base(self, value: object) -> Value:
        """Convert a scenario's value to base units. A number may be written in percent, such as ``"95%"``.

        Raises:
            Expected: if the value is of another kind or outside the range.
        """
        from narrows import units  # noqa: PLC0415 (help needs no native module)

        if self.optional and value == NONE:
            return NONE
        if not self._is_of_kind(value):
            raise Expected(self.expected)
        try:
            if self.kind == "number" and isinstance(value, str):
                value = float(value.removesuffix("%")) / 100
            elif self.kind == "time":
                value = units.parse_duration(value)
            elif self.kind == "rate":
                value = units.parse_rate(value) // 8
        except (Expected, ValueError):
            raise Expected(self.expected) from None
        assert isinstance(value, bool | int | float | str)
        if self.min is not None and self.max is not None and not self.min <= float(value) <= self.max:
            raise Expected(self.expected)
        return value

    def spelled(self, value: Value) -> str:
        """Convert a value in base units to the TOML text with which a scenario would set it."""
        from narrows import units  # noqa: PLC0415 (help needs no native module)

        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return f'"{value}"'
        if self.kind == "time":
            return f'"{units.format_duration(round(value))}"'
        if self.kind == "rate":
            return f'"{units.format_rate(round(value) * 8)}"'
        return f"{value:g}" if self.kind == "number" else str(round(value))

    def _is_of_kind(self, value: object) -> bool:
        match self.kind:
            case "flag":
                return isinstance(value, bool)
            case "word":
                return value in self.words
            case "whole":
                return isinstance(value, int) and not isinstance(value, bool)
            case "text" | "contents":
                return isinstance(value, str)
            case "number":
                is_share = isinstance(value, str) and value.endswith("%")
                return is_share or (isinstance(value, int | float) and not isinstance(value, bool))
            case "time" | "rate":
                return not isinstance(value, bool)


def by_name(rows: Iterable[dict[str, object]]) -> dict[str, Parameter]:
    """The parameters of an algorithm, from its rows in the native module's catalogue."""
    made = (_parameter(row) for row in rows)
    return {parameter.name: parameter for parameter in made}


def _parameter(row: dict[str, object]) -> Parameter:
    module = row["module"] and Module(**row["module"])  # type: ignore[arg-type]
    return Parameter(**{**row, "words": tuple(row["words"]), "module": module})  # type: ignore[arg-type]


def in_base_units(
    given: Mapping[str, object], known: Mapping[str, Parameter], owner: str, key: str
) -> dict[str, Value]:
    """The parameters that a scenario gives, in base units.

    Args:
        given: values as in the scenario.
        known: the parameters of the algorithm.
        owner: name of the algorithm.
        key: the key of the table in the scenario, for errors.

    Raises:
        ScenarioError: for an unknown parameter, or a value of another kind or outside the range.
    """
    result: dict[str, Value] = {}
    for name, value in given.items():
        parameter = known.get(name)
        if parameter is None:
            expected = f"a parameter of {owner}{hint(name, known)}" if known else f"no parameters for {owner}"
            raise ScenarioError(f"found an unknown key, expected {expected}", f"{key}.{name}")
        try:
            result[name] = parameter.base(value)
        except Expected as error:
            raise ScenarioError(f"found {found(value)}, expected {error}", f"{key}.{name}") from None
    return result
