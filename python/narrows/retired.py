"""Names of version 0.2 that are still accepted, with the names that replaced them.

Each use of an old name is reported once, in one line on standard error. The first release after 0.2 accepts
the old names. The second release after 0.2 refuses the old names, and no longer has this module.
docs/reference/glossary.md has the meaning of each current name.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from narrows.errors import ScenarioError

PACKAGE = Path(__file__).parent

_DATA: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""Old names in scenarios. The crate narrows-scenario reads the same file."""
SCENARIO_KEYS = _DATA["scenario_keys"]
"""Top-level keys of a scenario."""
QUEUE_KEYS = _DATA["queue_keys"]
"""Keys of a queue of the kind 'priority'."""
KINDS = {"controllers": "congestion", "rate-controllers": "rate"}
"""Kinds of `narrows list`."""
FACTORS = {"controller": "algorithm"}
"""Factors of studies, and the first column of a table that a paper prints."""
COLUMNS: dict[str, dict[str, str]] = {"signalling": {"controller": "rate_controller"}}
"""Columns of results, by table."""
ADDED: dict[str, list[str]] = {"flows": ["delay_mean_s"]}
"""By table: columns that are missing in results of earlier versions."""


_QUEUE_KEY = re.compile(rf"(^|\.)(?<=queue\.)({'|'.join(QUEUE_KEYS)})(?=\.|$)")
_WITH_QUEUES = ("topology", "links", "sweep")
"""Top-level keys of a scenario. Only the tables with these keys contain keys of queues."""


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
    first, dot, rest = key.partition(".")
    renamed = _QUEUE_KEY.sub(
        lambda found: found[1] + QUEUE_KEYS[found[2]], f"{SCENARIO_KEYS.get(first, first)}{dot}{rest}"
    )
    if renamed != key and place:
        report(place, key, renamed)
    return renamed


def scenario(data: Mapping[str, Any], place: str | None = None) -> dict[str, Any]:
    """The tables of a scenario with current names. The dotted keys in its sweep are converted, too.

    Args:
        data: the scenario's tables, which may be unchecked.
        place: the file, for reports (None: the code that called this package).

    Raises:
        ScenarioError: if both an old name and the current name of the same key occur.
    """
    renamed = _table(data, place, "")
    for key in _WITH_QUEUES:
        if key in renamed:
            renamed[key] = _queues(renamed[key], place)
    sweep = renamed.get("sweep")
    if isinstance(sweep, Mapping):
        renamed["sweep"] = sweep = dict(sweep)
        if isinstance(sweep.get("vary"), Mapping):
            sweep["vary"] = _table(sweep["vary"], place, "sweep.vary")
        if isinstance(sweep.get("case"), list):
            sweep["case"] = [
                {**case, "set": _table(case["set"], place, f"sweep.case.{i}.set")}
                if isinstance(case, Mapping) and isinstance(case.get("set"), Mapping)
                else case
                for i, case in enumerate(sweep["case"])
            ]
    return renamed


def _queues(value: Any, place: str | None) -> Any:
    """Returns a part of a scenario with the current names of the keys of queues."""
    if isinstance(value, list):
        return [_queues(item, place) for item in value]
    if not isinstance(value, Mapping):
        return value
    names = (
        QUEUE_KEYS if value.get("kind") == "priority" and not set(QUEUE_KEYS.values()) & set(value) else {}
    )
    for old in names.keys() & value:
        report(caller() if place is None else place, old, names[old])
    return {names.get(key, key): _queues(item, place) for key, item in value.items()}


def _table(data: Mapping[str, Any], place: str | None, at: str) -> dict[str, Any]:
    """Returns a table with current names, in the same order. Its keys are dotted keys of a scenario."""
    renamed: dict[str, Any] = {}
    for key, value in data.items():
        new = dotted_key(key)
        if new != key:
            if new in data:
                message = f"found also {key!r}, its old name, expected one of them"
                raise ScenarioError(message, f"{at}.{new}" if at else new)
            report(caller() if place is None else place, key, new)
        renamed[new] = value
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
        renamed["scenario"] = {SCENARIO_KEYS.get(key, key): value for key, value in data["scenario"].items()}
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
