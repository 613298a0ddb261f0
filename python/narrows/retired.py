"""Names of version 0.2 that are still accepted, with the names that replaced them.

Each use of an old name is reported once, in one line on standard error. The first release after 0.2 accepts
the old names. The second release after 0.2 refuses the old names, and no longer has this module.
docs/reference/glossary.md has the meaning of each current name.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent

KINDS = {"controllers": "congestion", "rate-controllers": "rate"}
"""Kinds of `narrows list`."""
FACTORS = {"controller": "algorithm"}
"""Factors of studies, and the first column of a table that a paper prints."""
COLUMNS: dict[str, dict[str, str]] = {"signalling": {"controller": "rate_controller"}}
"""Columns of results, by table."""
ADDED: dict[str, list[str]] = {"flows": ["delay_mean_s"]}
"""By table: columns that are missing in results of earlier versions."""


@cache
def report(place: str, old: str, new: str) -> None:
    """Report an old name on standard error, but only once for each place.

    Args:
        place: the file that has the name, or the command.
        old: the name found.
        new: the name that replaced it.
    """
    print(f"{place}: {old!r} is now {new!r}; the next release refuses the old name", file=sys.stderr)


def caller() -> str:
    """File and line of the code that called this package."""
    for frame in inspect.stack(context=0):
        if not Path(frame.filename).is_relative_to(PACKAGE):
            return f"{frame.filename}:{frame.lineno}"
    return "narrows"


def current(name: str, names: Mapping[str, str], place: str) -> str:
    """The current name for a name that may be old."""
    if name in names:
        report(place, name, names[name])
    return names.get(name, name)


def dotted_key(key: str, place: str = "") -> str:
    """A scenario's dotted key with current names. If `place` is given, old names are reported."""
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    renamed = _native.scenario_current_key(key)
    if renamed != key and place:
        report(place, key, renamed)
    return renamed


def scenario(data: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The tables of a scenario with current names. The dotted keys in its sweep are converted, too.

    Args:
        data: the scenario's tables, which may be unchecked.
        place: the file, for reports.

    Raises:
        ScenarioError: if both an old name and the current name of the same key occur.
    """
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    renamed, names = _native.scenario_current_names(data)
    for old, new in names:
        report(place, old, new)
    return renamed


_NAMED_BY_KEYS = ("factors", "keep", "where")
"""Tables of a study whose keys are factors."""
_SCENARIO_VALUES = ("factors", "key", "omit")
"""Keys of a study whose values are dotted keys of its scenarios."""


def study(table: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The tables of a study with the current names of factors and of the scenarios' keys.

    A figure's `args` are converted, too, because their values can be names of factors, e.g.
    ``panels = "controller"``.
    """

    def name(old: str, new: str) -> str:
        if new != old:
            report(place, old, new)
        return new

    def part(value: Any, inside: str) -> Any:
        if isinstance(value, list):
            return [part(item, inside) for item in value]
        if isinstance(value, Mapping):
            names = FACTORS if inside in _NAMED_BY_KEYS else {}
            stays = inside in ("args", "factors")
            return {
                name(key, names.get(key) or key): part(item, inside if stays else key)
                for key, item in value.items()
            }
        if isinstance(value, str) and inside == "args":
            return name(value, FACTORS.get(value) or value)
        if isinstance(value, str) and inside in _SCENARIO_VALUES:
            return name(value, dotted_key(value))
        return value

    parts = ("experiments", "figures", "claims")
    return {key: part(value, key) if key in parts else value for key, value in table.items()}


def columns(table: str, names: Iterable[str]) -> list[str]:
    """Current names of the columns of a table. An earlier version may have written the table."""
    known = COLUMNS.get(table, {})
    return [known.get(name, dotted_key(name) if table == "runs" else name) for name in names]


def metadata(data: dict[str, Any]) -> dict[str, Any]:
    """The metadata of results with current names. The function does not check the metadata."""
    renamed = dict(data)
    if isinstance(data.get("scenario"), dict):
        renamed["scenario"] = {dotted_key(key): value for key, value in data["scenario"].items()}
    if isinstance(data.get("factors"), list):
        renamed["factors"] = [dotted_key(name) if isinstance(name, str) else name for name in data["factors"]]
    if isinstance(data.get("runs"), list):
        runs = data["runs"]
        keys = {key for run in runs if isinstance(run, dict) for key in run}
        names = {key: dotted_key(key) for key in keys}
        if any(name != key for key, name in names.items()):
            renamed["runs"] = [
                {names[key]: value for key, value in run.items()} if isinstance(run, dict) else run
                for run in runs
            ]
    return renamed
