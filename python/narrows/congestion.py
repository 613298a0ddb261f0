"""The native module's catalogue of congestion controllers: names, parameters, looks and requirements.

This module imports the native module only when the catalogue is first used, because loading it takes long.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from narrows.parameters import Parameter, Value, by_name
from narrows.plan import FlowPlan

EBPF = {
    "bbr-a": "narrows_bbr_a",
    "bbr-b": "narrows_bbr_b",
    "bbr-c": "narrows_bbr_c",
    "bbq": "narrows_bbq",
    "bbr2": "narrows_bbr2",
    "bbr3": "narrows_bbr3",
    "bbr": "narrows_bbr",
}
"""Kernel names of the algorithms that `narrows-agent cc` loads as eBPF programs
(crates/narrows-agent/src/cc/place.rs).
"""


_CLASS_FILE = re.compile(r"(?P<file>.+\.py):(?P<cls>[^\W\d]\w*)")


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
    """Values of the parameters, in base units."""
    mode: str | None
    """The rate controller's ``mode`` for this preset (None: the same mode as for the algorithm)."""
    look: Look


@dataclass(frozen=True, slots=True)
class Service:
    """The rate controller that an algorithm needs at ports."""

    kind: str
    mode: str | None
    domain: bool
    """Whether the algorithm also needs an SDN controller for the domain."""
    feedback: Literal["option", "header", "message"]
    """How the rates of the rate controller reach the sender."""


@dataclass(frozen=True, slots=True)
class Linux:
    """The implementation of an algorithm in Linux."""

    name: str
    module: str | None
    """The kernel module. None if the code is part of TCP itself."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of the catalogue."""

    name: str
    family: Literal["loss", "delay", "model", "marks", "network"]
    summary: str
    marks_or_else: str | None
    """The algorithm that this algorithm equals if no packets are marked (None: this algorithm ignores
    marks)."""
    service: Service | None
    linux: Linux | None
    look: Look | None
    parameters: Mapping[str, Parameter]
    presets: Mapping[str, Preset]


@functools.cache
def catalogue() -> Mapping[str, Algorithm]:
    """All algorithms by name, sorted by family."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    return {row["name"]: _algorithm(row) for row in json.loads(_native.congestion_catalogue())}


def _algorithm(row: dict[str, object]) -> Algorithm:
    def table(key: str) -> dict[str, object] | None:
        return row[key]  # type: ignore[return-value]

    rows: list[dict[str, object]] = row["parameters"]  # type: ignore[assignment]
    parameters = by_name(rows)
    rows = row["presets"]  # type: ignore[assignment]
    presets = [Preset(**{**preset, "look": Look(**preset["look"])}) for preset in rows]  # type: ignore[arg-type]
    plain = {key: row[key] for key in ("name", "family", "summary", "marks_or_else")}
    service, linux, look = table("service"), table("linux"), table("look")
    return Algorithm(
        **plain,  # type: ignore[arg-type]
        service=service and Service(**service),  # type: ignore[arg-type]
        linux=linux and Linux(**linux),  # type: ignore[arg-type]
        look=look and Look(**look),  # type: ignore[arg-type]
        parameters=parameters,
        presets={preset.name: preset for preset in presets},
    )


def class_file(name: str) -> tuple[str, str] | None:
    """The file and the class that a value of `cc` names, e.g. ``copa.py:Copa``; None for other values."""
    match = _CLASS_FILE.fullmatch(name)
    return None if match is None else (match["file"], match["cls"])


def find(name: str) -> tuple[Algorithm, Preset | None] | None:
    """The algorithm with this name, or the preset with this name and its algorithm. None for other names."""
    known = catalogue()
    if name in known:
        return known[name], None
    return next(((row, row.presets[name]) for row in known.values() if name in row.presets), None)


def names() -> Iterator[tuple[str, Algorithm, Preset | None]]:
    """All names that `cc` may have in the simulator, by family: first the algorithms, then their presets."""
    families = dict.fromkeys(row.family for row in catalogue().values())
    for family in families:
        rows = [row for row in catalogue().values() if row.family == family]
        yield from ((row.name, row, None) for row in rows)
        yield from ((name, row, preset) for row in rows for name, preset in row.presets.items())


def marked() -> dict[str, str]:
    """For each congestion controller that depends on marks, the controller that it equals without marks."""
    return {name: row.marks_or_else for name, row, _ in names() if row.marks_or_else is not None}


def spelled(row: Algorithm, preset: Preset) -> str:
    """The value of `cc` for a preset: the algorithm with the preset's parameters."""
    params = (f"{key} = {row.parameters[key].spelled(value)}" for key, value in preset.params.items())
    return f'{{ name = "{row.name}", {", ".join(params)} }}'


def registered(name: str) -> str:
    """The kernel's name of a scenario's congestion controller.

    In scenarios, `bbr` means the kernel's own BBR.
    """
    return name if name == "bbr" else EBPF.get(name, name)


def chosen(flow: FlowPlan) -> str:
    """The name of the kernel's congestion controller for a plan's flow; empty for UDP and other stacks."""
    transport = flow["transport"]
    if transport["kind"] not in ("tcp", "program"):
        return ""
    cc = transport.get("cc")
    return str(cc["name"]) if isinstance(cc, dict) else str(cc or "")


def parameters(flow: FlowPlan) -> dict[str, Value]:
    """The parameters of the congestion controller of a plan's flow, in base units."""
    transport = flow["transport"]
    cc = transport.get("cc") if transport["kind"] in ("tcp", "program") else None
    return {key: value for key, value in cc.items() if key != "name"} if isinstance(cc, dict) else {}
