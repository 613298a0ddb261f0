"""The catalogue of congestion controllers, as the native module has it: names, parameters, looks and needs.

Nothing is imported before the first use, because the native module takes long to load.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from narrows import units
from narrows.errors import Expected, ScenarioError, found, hint
from narrows.plan import FlowPlan

NONE = "none"
"""The word for "no limit" or "not used" of parameters that may be absent."""

EBPF = {
    "bbr-a": "narrows_bbr_a",
    "bbr-b": "narrows_bbr_b",
    "bbr-c": "narrows_bbr_c",
    "bbr": "narrows_bbr",
}
"""Algorithms that `narrows-agent cc` loads as eBPF programs, and their names in the kernel
(crates/narrows-agent/src/cc/place.rs).
"""

Value = bool | int | float | str
"""A parameter's value: as given in a scenario, or in base units (ns, bytes/s)."""


@dataclass(frozen=True, slots=True)
class Module:
    """The parameter of a Linux module with the same meaning."""

    parameter: str
    """Its file in ``/sys/module/MODULE/parameters``."""
    factor: float = 0.0
    """The module's whole number is the value in base units times this."""
    words: Mapping[str, int] | None = None
    """The module's numbers for words; None if values are numbers."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an algorithm."""

    name: str
    kind: Literal["flag", "word", "whole", "number", "time", "rate"]
    min: float | None
    max: float | None
    """Range in base units."""
    words: tuple[str, ...]
    optional: bool
    """Whether it may be `NONE`."""
    unit: str
    default: Value
    """In base units."""
    default_text: str
    """As a scenario spells it, without quotes."""
    expected: str
    """The end of "expected ..." in errors: kind and range."""
    meaning: str
    source: str
    module: Module | None

    def base(self, value: object) -> Value:
        """A scenario's value in base units.

        Raises:
            Expected: if it is of another kind or outside the range.
        """
        if self.optional and value == NONE:
            return NONE
        if not self._is_of_kind(value):
            raise Expected(self.expected)
        try:
            if self.kind == "time":
                value = units.parse_duration(value)
            elif self.kind == "rate":
                value = units.parse_rate(value) // 8
        except Expected:
            raise Expected(self.expected) from None
        assert isinstance(value, bool | int | float | str)
        if self.min is not None and self.max is not None and not self.min <= float(value) <= self.max:
            raise Expected(self.expected)
        return value

    def spelled(self, value: Value) -> str:
        """A value in base units as TOML in a scenario."""
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
            case "number":
                return isinstance(value, int | float) and not isinstance(value, bool)
            case "time" | "rate":
                return not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Look:
    """How figures draw an algorithm: see `narrows.report.style.Look`."""

    label: str
    light: str
    dark: str
    dash: Literal["solid", "dashed", "dotted", "dash-dot"]
    marker: str


@dataclass(frozen=True, slots=True)
class Preset:
    """A name for an algorithm with certain parameters."""

    name: str
    summary: str
    params: Mapping[str, Value]
    """In base units."""
    mode: str | None
    """``mode`` of the rate controller that serves it, if it differs from the algorithm's."""
    look: Look


@dataclass(frozen=True, slots=True)
class Service:
    """The rate controller that an algorithm needs at ports."""

    kind: str
    mode: str | None
    domain: bool
    """Whether a controller of the domain is needed too."""
    feedback: Literal["option", "header", "message"]
    """How its answers reach the sender."""


@dataclass(frozen=True, slots=True)
class Linux:
    """The algorithm in Linux."""

    name: str
    module: str | None
    """None if the code is part of TCP itself."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of the catalogue."""

    name: str
    family: Literal["loss", "delay", "model", "marks", "network"]
    summary: str
    marks_or_else: str | None
    """Without ECN marks it behaves as this algorithm."""
    service: Service | None
    linux: Linux | None
    look: Look | None
    parameters: Mapping[str, Parameter]
    presets: Mapping[str, Preset]

    def base(self, params: Mapping[str, object], key: str = "cc") -> dict[str, Value]:
        """A scenario's parameters in base units.

        Raises:
            ScenarioError: for an unknown parameter, or a value of another kind or outside the range.
        """
        result: dict[str, Value] = {}
        for name, value in params.items():
            parameter = self.parameters.get(name)
            if parameter is None:
                raise ScenarioError(self._unknown(name), f"{key}.{name}")
            try:
                result[name] = parameter.base(value)
            except Expected as error:
                raise ScenarioError(f"found {found(value)}, expected {error}", f"{key}.{name}") from None
        return result

    def _unknown(self, name: str) -> str:
        if not self.parameters:
            return f"found an unknown key, expected no parameters for {self.name}"
        return f"found an unknown key, expected a parameter of {self.name}{hint(name, self.parameters)}"


@functools.cache
def catalogue() -> Mapping[str, Algorithm]:
    """All algorithms by name, sorted by family."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    return {row["name"]: _algorithm(row) for row in json.loads(_native.congestion_catalogue())}


def _algorithm(row: dict[str, object]) -> Algorithm:
    def table(key: str) -> dict[str, object] | None:
        return row[key]  # type: ignore[return-value]

    rows: list[dict[str, object]] = row["parameters"]  # type: ignore[assignment]
    parameters = [_parameter(parameter) for parameter in rows]
    rows = row["presets"]  # type: ignore[assignment]
    presets = [Preset(**{**preset, "look": Look(**preset["look"])}) for preset in rows]  # type: ignore[arg-type]
    plain = {key: row[key] for key in ("name", "family", "summary", "marks_or_else")}
    service, linux, look = table("service"), table("linux"), table("look")
    return Algorithm(
        **plain,  # type: ignore[arg-type]
        service=service and Service(**service),  # type: ignore[arg-type]
        linux=linux and Linux(**linux),  # type: ignore[arg-type]
        look=look and Look(**look),  # type: ignore[arg-type]
        parameters={parameter.name: parameter for parameter in parameters},
        presets={preset.name: preset for preset in presets},
    )


def _parameter(row: dict[str, object]) -> Parameter:
    module = row["module"] and Module(**row["module"])  # type: ignore[arg-type]
    return Parameter(**{**row, "words": tuple(row["words"]), "module": module})  # type: ignore[arg-type]


def find(name: str) -> tuple[Algorithm, Preset | None] | None:
    """The algorithm with this name, or the algorithm and its preset."""
    known = catalogue()
    if name in known:
        return known[name], None
    return next(((row, row.presets[name]) for row in known.values() if name in row.presets), None)


def names() -> Iterator[tuple[str, Algorithm, Preset | None]]:
    """All names that `cc` may have in the simulator: of each family the algorithms, then the presets."""
    families = dict.fromkeys(row.family for row in catalogue().values())
    for family in families:
        rows = [row for row in catalogue().values() if row.family == family]
        yield from ((row.name, row, None) for row in rows)
        yield from ((name, row, preset) for row in rows for name, preset in row.presets.items())


def spelled(row: Algorithm, preset: Preset) -> str:
    """A preset as a scenario would write it without its name."""
    params = (f"{key} = {row.parameters[key].spelled(value)}" for key, value in preset.params.items())
    return f'{{ name = "{row.name}", {", ".join(params)} }}'


def chosen(flow: FlowPlan) -> str:
    """The congestion controller of a plan's flow; empty for UDP."""
    transport = flow["transport"]
    if transport["kind"] != "tcp":
        return ""
    cc = transport["cc"]
    return str(cc["name"]) if isinstance(cc, dict) else cc


def parameters(flow: FlowPlan) -> dict[str, Value]:
    """The parameters of the congestion controller of a plan's flow, in base units."""
    transport = flow["transport"]
    if transport["kind"] != "tcp" or isinstance(transport["cc"], str):
        return {}
    return {key: value for key, value in transport["cc"].items() if key != "name"}
