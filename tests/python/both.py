"""Compares the two implementations of scenarios: the Python package and the crate narrows-scenario.

`python -m pytest -p both FILE...` compares each scenario, sweep and plan that the tests in these files make. It writes
the counts and the differences to the file that the environment variable NARROWS_BOTH names.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows import _native
from narrows.errors import ScenarioError
from narrows.scenario import load as load_module
from narrows.scenario import model as model_module
from narrows.scenario import resolve as resolve_module
from narrows.scenario.model import Scenario

SYNTAX = re.compile(r"found no valid TOML|found \[.*\] a second time")
"""Errors whose words come from the parser of TOML."""


@dataclass
class Tally:
    """Counts of equal outcomes, and the differences."""

    equal: Counter[str] = field(default_factory=Counter)
    differences: list[dict[str, Any]] = field(default_factory=list)

    def judge(self, what: str, given: object, python: object, rust: object) -> None:
        """Compare two outcomes. Each is ``{"error": line}`` or another value."""
        failed = isinstance(python, dict) and "error" in python
        kind = f"{what} errors" if failed else what
        if python == rust:
            self.equal[kind] += 1
        elif failed and isinstance(rust, dict) and "error" in rust and SYNTAX.search(python["error"]) and (
            SYNTAX.search(rust["error"])
        ):
            self.equal[f"{what} errors in the words of the parser"] += 1
        else:
            self.differences.append({"what": kind, "given": given, "python": python, "rust": rust})


def _networks() -> str | None:
    """The folder with the networks of topohub."""
    spec = importlib.util.find_spec("topohub")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "data")


@functools.cache
def _answers() -> subprocess.Popen[str] | None:
    """The example `answers` of the crate, if the environment names its program: it needs no native module."""
    program = os.environ.get("NARROWS_ANSWERS")
    if program is None:
        return None
    command = [program, *filter(None, [_networks()])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def rust(**request: Any) -> dict[str, Any]:
    """The outcome in Rust."""
    text = json.dumps(request, default=str)
    answer: dict[str, Any]
    program = _answers()
    if program is not None:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(text + "\n")
        program.stdin.flush()
        answer = json.loads(program.stdout.readline())
        return answer
    try:
        answer = json.loads(_native.scenario_runs(text, _networks()))
    except ValueError as error:
        return {"error": str(error)}
    return answer


def outcome(make: Callable[[], Any]) -> Any:
    """The result of a function, or its error."""
    try:
        return make()
    except ScenarioError as error:
        return {"error": str(error)}


def plain(value: object) -> Any:
    """The value after a way through JSON."""
    return json.loads(json.dumps(value, default=str))


def written(plan: object) -> Any:
    """A plan with all its keys, or an error."""
    if isinstance(plan, dict) and "error" in plan:
        return plan
    return json.loads(_native.plan_as_written(json.dumps(plan)))


def both_scenarios(tally: Tally, given: dict[str, Any], scenario: Any) -> None:
    """Compare a scenario with all its keys."""
    python = scenario if isinstance(scenario, dict) else {"raw": scenario.raw(), "full": scenario.full()}
    answer = rust(**given)
    if "error" not in answer:
        answer = {key: answer[key] for key in ("raw", "full")}
    tally.judge("scenarios", given, plain(python), answer)


def both_sweeps(tally: Tally, given: dict[str, Any], runs: Any) -> None:
    """Compare the runs of a sweep."""
    answer = rust(**given, expand=True)
    rows = lambda run: [run["id"], run["seed"], run["factors"], run["raw"]]  # noqa: E731
    if isinstance(runs, dict):
        python: Any = runs
    else:
        made: dict[int, Any] = {}
        python = [
            [run.id, run.seed, run.factors, made.setdefault(id(run.point), run.point.raw())] for run in runs
        ]
    tally.judge(
        "sweeps", given, plain(python), answer if "error" in answer else [rows(run) for run in answer["runs"]]
    )


def both_plans(tally: Tally, given: dict[str, Any], plan: Any) -> None:
    """Compare a plan."""
    answer = rust(**given, resolve=True)
    if "error" not in answer:
        (made,) = answer["runs"]
        answer = made["plan"] if "plan" in made else {"error": made["error"]}
    tally.judge("plans", given, written(plan), answer)


TALLY = Tally()
_busy = False


def _once(compare: Callable[..., None]) -> Callable[..., None]:
    """Do not compare what the comparison itself does."""

    @functools.wraps(compare)
    def guarded(*args: Any) -> None:
        global _busy
        if not _busy:
            _busy = True
            try:
                compare(*args)
            finally:
                _busy = False

    return guarded


def _patched(owner: Any, name: str, compare: Callable[..., None]) -> None:
    """Compare the outcome of each call of a function."""
    function = getattr(owner, name)
    checked = _once(compare)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except ScenarioError as error:
            checked({"error": str(error)}, *args, **kwargs) if not kwargs else checked(
                {"error": str(error)}, *args, kwargs
            )
            raise
        checked(result, *args) if not kwargs else checked(result, *args, kwargs)
        return result

    setattr(owner, name, wrapper)


def _options(values: tuple[Any, ...], names: tuple[str, ...]) -> dict[str, Any]:
    """Positional and keyword arguments by name."""
    *given, last = values or (None,)
    if isinstance(last, dict) and set(last) <= set(names):
        return dict(zip(names, given, strict=False)) | last
    return dict(zip(names, values, strict=False))


def _loads(result: Any, text: str, *rest: Any) -> None:
    given = _options(rest, ("source", "overrides")) if rest else {}
    overrides: Mapping[str, Any] = given.get("overrides") or {}
    request = {
        "text": text,
        "source": str(given.get("source", "scenario")),
        "overrides": [[key, value] for key, value in overrides.items()],
    }
    both_scenarios(TALLY, request, result)


def _made(result: Any, scenario: Scenario, data: dict[str, Any] | None = None) -> None:
    request = {"data": plain(data or {}), "source": "scenario"}
    both_scenarios(TALLY, request, result if isinstance(result, dict) else scenario)


def _expand(result: Any, scenario: Scenario, *rest: Any) -> None:
    seeds = _options(rest, ("seeds",)).get("seeds") if rest else None
    both_sweeps(TALLY, {"data": scenario.raw(), "source": scenario.source, "seeds": seeds}, result)


def _survey(result: Any, scenario: Scenario, *rest: Any) -> None:
    names = ("congestion_controllers", "rate_controllers", "kernel")
    options = _options(rest, names) if rest else {}
    lists: dict[str, Iterable[str]] = {key: list(options.get(key, ())) for key in names[:2]}
    request = {"data": scenario.raw(), "source": scenario.source, "kernel": options.get("kernel", ""), **lists}
    both_plans(TALLY, request, result if isinstance(result, dict) else result.plan)


def pytest_configure() -> None:
    """Install the comparison before the tests import the functions."""
    _patched(load_module, "loads", _loads)
    _patched(load_module, "expand", _expand)
    _patched(resolve_module, "survey", _survey)
    _patched(model_module.Scenario, "__init__", _made)


def pytest_unconfigure() -> None:
    """Write the counts and the differences."""
    if path := os.environ.get("NARROWS_BOTH"):
        report = {"equal": TALLY.equal, "differences": TALLY.differences}
        Path(path).write_text(json.dumps(report, indent=1, default=str), encoding="utf-8")
