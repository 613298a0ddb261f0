"""Reads scenarios from TOML, and expands a sweep into runs."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from narrows import retired, stacks
from narrows.errors import ScenarioError, found, hint, unreadable
from narrows.scenario.limits import MAX_SEED
from narrows.scenario.model import Scenario, Sweep
from narrows.scenario.parts import result_names
from narrows.scenario.problems import double_brackets, is_list_of_tables
from narrows.scenario.program import default_name
from narrows.scenario.traffic import Flow

MAX_FILE_BYTES = 64 << 20
MAX_POINTS = 10_000
"""Maximum number of points in a sweep."""
MAX_RUNS = 100_000
"""Maximum number of runs: points times seeds."""
_DEEPEST = 64
_PARTS = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^."']+))(?:\.(?!$)|$)""")
"""A part of a dotted key, with or without TOML's quotes, and the dot after it."""
_TWICE = re.compile(r"Cannot declare \(((?:'[^']+',? ?)+)\) twice(.*)")
"""tomllib's error about a repeated header."""
DEFAULT_CC = str(Flow.model_fields["cc"].default.name)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a sweep."""

    id: int
    """Number of the run, from 0."""
    point: Scenario
    """The scenario of the run's point, without a sweep. Its seed is the seed of the first run at this
    point."""
    seed: int
    """Seed of the run."""
    factors: dict[str, str | float] = field(default_factory=dict)
    """Values of the sweep's factors: ``case`` and the keys of `sweep.vary`."""

    @property
    def scenario(self) -> Scenario:
        """The scenario of this run, without a sweep. It is made on demand, because sweeps have many runs."""
        return self.point.model_copy(update={"seed": self.seed}).with_source(self.point.source)


def load(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        path: a TOML file.
        overrides: values that replace the file's values, by dotted key, e.g. ``{"topology.rate": "20mbit"}``.

    Raises:
        ScenarioError: one line that names file, key, what was found and what was expected.
    """
    path = Path(path)
    try:
        if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
            raise ScenarioError(
                f"found more than {MAX_FILE_BYTES >> 20} MiB, expected a scenario", "", str(path)
            )
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ScenarioError("found other bytes, expected UTF-8 text", "", str(path)) from None
    except (OSError, ValueError) as error:
        raise ScenarioError(unreadable(error, "a scenario"), "", str(path)) from None
    return loads(text, str(path), overrides)


def loads(text: str, source: str = "scenario", overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Reads a scenario from a string.

    Args:
        text: TOML.
        source: path of the file with this text. Errors name this path. The stem of the path is the default of
            `name`. Paths of traces are relative to the file's folder.
        overrides: values by dotted key.

    Raises:
        ScenarioError: one line, as for `load`.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(_about_toml(str(error)), "", source) from None
    except (RecursionError, ValueError):
        raise ScenarioError("found no valid TOML", "", source) from None
    try:
        data = retired.scenario(data, source)
        for key, value in (overrides or {}).items():
            override(data, retired.dotted_key(key, source), value)
        data = retired.scenario(data, source)  # again: an override may set a sweep with old names
        return Scenario(**{"name": _name(source), **data}).with_source(source)
    except ScenarioError as error:
        raise error.in_source(source) from None
    except RecursionError:
        raise ScenarioError("found tables nested too deep", "", source) from None


def _about_toml(problem: str) -> str:
    """The message about a problem that tomllib found."""
    twice = _TWICE.fullmatch(problem)
    if twice is None:
        return f"found no valid TOML: {problem}"
    names = re.findall(r"'([^']+)'", twice[1])
    expected = double_brackets(names) if is_list_of_tables(Scenario, names) else "each table once"
    return f"found [{'.'.join(names)}] a second time{twice[2]}, expected {expected}"


def _name(source: str) -> str:
    """A scenario's name from its file's stem, with invalid characters replaced."""
    return re.sub(r"[^\w.+-]", "-", Path(source).stem, flags=re.ASCII).lstrip(".-")[:64] or "scenario"


def parse_override(text: str) -> tuple[str, Any]:
    """Parse ``key=value`` of a command line. The value is TOML, or a string without quotes.

    Raises:
        ScenarioError: if there is no ``=``.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ScenarioError(f"found {found(text)}, expected key=value", "--set")
    try:
        return key.strip(), tomllib.loads(f"v = {value}")["v"]
    except (ValueError, RecursionError):
        return key.strip(), value.strip()


def override(data: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key in place.

    Parts of the key are names of tables. A part that contains dots is in quotes, as in TOML. For a list of
    tables, a part is the number or name of an entry, or ``*`` for all entries. The name of a flow is its name
    in results, e.g. ``bbr`` for a BBR flow whose name is not set.

    Raises:
        ScenarioError: if the key is not a dotted key, or leads to a table or entry that does not exist.
    """
    parts = _parts(key)
    if len(parts) > _DEEPEST or not all(parts):
        raise ScenarioError(f"found {found(key)}, expected a dotted key such as 'topology.rate'")
    places: list[Any] = [data]
    for depth, part in enumerate(parts):
        here = ".".join(parts[: depth + 1])
        last = depth + 1 == len(parts)
        following: list[Any] = []
        for place in places:
            if isinstance(place, dict):
                if last:
                    place[part] = copy.deepcopy(value)
                else:
                    if _is_cc(parts[: depth + 1]) and not isinstance(place.get(part), dict):
                        # The key sets a parameter, so replace the controller's name with a table.
                        place[part] = {"name": _cc_name(place.get(part))}
                    following.append(place.setdefault(part, {}))
            elif isinstance(place, list):
                for index in _entries(place, part, here):
                    if last:
                        place[index] = copy.deepcopy(value)
                    else:
                        following.append(place[index])
            else:
                raise ScenarioError(f"found {found(place)}, expected a table", ".".join(parts[:depth]))
        places = following


def _parts(key: str) -> list[str]:
    """The parts of a dotted key, without their quotes. If the key is not valid, one of the parts is empty."""
    parts: list[str] = []
    position = 0
    while position < len(key):
        match = _PARTS.match(key, position)
        if match is None:
            return [""]
        parts.append(match[1] or match[2] or match[3] or "")
        position = match.end()
    return parts or [""]


def _entries(entries: list[Any], part: str, key: str) -> Iterable[int]:
    if part == "*":
        return range(len(entries))
    if part.isascii() and part.isdigit() and len(part) < 10 and int(part) < len(entries):
        return [int(part)]
    tables = {i: entry for i, entry in enumerate(entries) if isinstance(entry, dict)}
    if key == f"flows.{part}":
        names = dict(zip(tables, _flow_names(tables.values()), strict=True))
    else:
        names = {i: str(table["name"]) for i, table in tables.items() if "name" in table}
    matching = [i for i, name in names.items() if name == part]
    if not matching:
        what = f"an entry from 0 to {len(entries) - 1}" if entries else "an entry (there is none)"
        raise ScenarioError(f"found {found(part)}, expected {what}{hint(part, names.values())}", key)
    return matching


def _flow_names(flows: Iterable[dict[str, Any]]) -> list[str]:
    """The names that flows have in results, from tables that have not been checked yet."""
    kinds = [(flow.get("name"), _kind(flow)) for flow in flows]
    return result_names([(None if name is None else str(name), str(kind)) for name, kind in kinds])


def _kind(flow: dict[str, Any]) -> object:
    """The default name of a flow, from values that have not been checked yet."""
    program = flow.get("program")
    if isinstance(program, dict):
        with contextlib.suppress(ValueError, IndexError):
            return default_name(str(program.get("client")))
    transport, cc = flow.get("transport"), _cc_name(flow.get("cc"))
    if transport in (None, "tcp"):
        return cc
    return "udp" if transport == "udp" else stacks.default_name(str(transport), str(cc))


def _is_cc(parts: list[str]) -> bool:
    """Whether a key with these parts is the `cc` of a flow."""
    return len(parts) == 3 and parts[0] == "flows" and parts[2] == "cc"


def _cc_name(cc: object) -> object:
    """The name of a flow's congestion controller, from a value of `cc` that has not been checked yet."""
    if isinstance(cc, dict):
        cc = cc.get("name")
    return DEFAULT_CC if cc is None else cc


def expand(scenario: Scenario, seeds: int | None = None) -> list[Run]:
    """The runs of a scenario: each case, with each combination of the varied values, with each seed.

    Args:
        scenario: the scenario, with or without a sweep.
        seeds: number of seeds (None: the number in the scenario's sweep).

    Raises:
        ScenarioError: if a variation is not valid, if there are too many runs, or if a seed is too large.
    """
    sweep = scenario.sweep or Sweep()
    n_seeds = sweep.seeds if seeds is None else seeds
    if n_seeds < 1:
        raise ScenarioError(f"found {n_seeds}, expected at least 1", "sweep.seeds", scenario.source)
    cases = [(case.name, case.set) for case in sweep.case] or [("", {})]
    points = len(cases) * math.prod(len(values) for values in sweep.vary.values())
    if points > MAX_POINTS:
        raise ScenarioError(f"found {points} points, expected at most {MAX_POINTS}", "sweep", scenario.source)
    if points * n_seeds > MAX_RUNS:
        raise ScenarioError(
            f"found {points * n_seeds} runs, expected at most {MAX_RUNS}", "sweep", scenario.source
        )
    base = scenario.raw()
    base.pop("sweep", None)
    base.pop("expect", None)
    runs: list[Run] = []
    for name, changes in cases:
        for combination in itertools.product(*sweep.vary.values()):
            varied = dict(zip(sweep.vary, combination, strict=True))
            factors: dict[str, str | float] = {"case": name} if name else {}
            factors |= {key: _label(value) for key, value in varied.items()}
            point = _vary(scenario, base, changes | varied, f"sweep.case.{name}" if name else "sweep.vary")
            if point.seed + n_seeds - 1 > MAX_SEED:
                message = f"found {n_seeds} seeds from {point.seed} on, expected none above {MAX_SEED}"
                raise ScenarioError(message, "seed", scenario.source)
            for i in range(n_seeds):
                runs.append(Run(len(runs), point, point.seed + i, factors))
    return _one_type_per_factor(runs)


def _one_type_per_factor(runs: list[Run]) -> list[Run]:
    """Give all values of a factor one type: numbers if all of them are numbers, otherwise strings."""
    text = {key for run in runs for key, value in run.factors.items() if isinstance(value, str)}
    typed: dict[int, dict[str, str | float]] = {}
    for run in runs:
        if id(run.factors) not in typed:
            typed[id(run.factors)] = {k: str(v) if k in text else float(v) for k, v in run.factors.items()}
    return [replace(run, factors=typed[id(run.factors)]) for run in runs]


def _vary(scenario: Scenario, base: dict[str, Any], changes: dict[str, Any], where: str) -> Scenario:
    if not changes:
        return Scenario(**base).with_source(scenario.source)
    data = copy.deepcopy(base)
    try:
        for key, value in changes.items():
            if key.split(".")[0] == "sweep":
                raise ScenarioError("found a sweep, expected any other key", key)
            override(data, key, value)
        return Scenario(**data).with_source(scenario.source)
    except ScenarioError as error:
        raise ScenarioError(f"{error.key}: {error.message}", where, scenario.source) from None


def _label(value: Any) -> str | float:
    """The form in which the table of runs has this value of a factor."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return value
    return json.dumps(value, sort_keys=True)
