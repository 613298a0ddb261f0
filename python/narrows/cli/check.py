"""The work of `narrows check` and `narrows schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from narrows import sweep, units
from narrows.cli.commands.shared import On
from narrows.cli.console import plain
from narrows.cli.options import overrides
from narrows.cli.run import expectations, real_stacks
from narrows.errors import NarrowsError
from narrows.plan import Plan
from narrows.scenario import schema as scenario_schema
from narrows.scenario.load import Run, expand, load
from narrows.scenario.model import Scenario
from narrows.scenario.notes import notes
from narrows.scenario.resolve import resolve


def check(
    scenario: Path,
    seed: int | None,
    seeds: int | None,
    override: list[str],
    on: On,
    *,
    show: bool,
    plan: bool,
    as_json: bool,
) -> None:
    """Check a scenario, and print its size or its plan."""
    loaded = load(scenario, overrides(override, seed))
    runs = expand(loaded, seeds)
    expectations(loaded)
    if plan:
        print(_plan_alone(runs[0].scenario, on))
        return
    backend = real_stacks(on) or sweep.simulator()
    checked = sweep.check(runs, sweep.Resolver(backend), backend)
    if show:
        print(json.dumps({"scenario": loaded.full(), "plan": checked}, indent=2))
        return
    facts = _facts(loaded, runs, checked)
    if as_json:
        print(json.dumps({"scenario": str(scenario), **facts, "notes": notes(runs)}, indent=2))
        return
    console = plain()
    console.print(
        f"{scenario}: {_many(facts['runs'], 'run')} of {units.format_duration(loaded.duration)}, "
        f"{_many(facts['nodes'], 'node')}, {_many(facts['links'], 'link')}, {_many(facts['flows'], 'flow')}"
    )
    for note in notes(runs):
        console.print(f"note: {note}")


def _plan_alone(scenario: Scenario, on: On) -> str:
    """The plan of a scenario as JSON, without the options of real stacks.

    Raises:
        NarrowsError: if --on is kernel or vm, because only narrows can run plans for real stacks.
    """
    if on is not On.SIM:
        raise NarrowsError(f"--plan: found --on {on}, expected --on sim")
    plan = resolve(scenario)
    plan.pop("kernel", None)
    return json.dumps(plan, indent=2)


def _facts(loaded: Scenario, runs: list[Run], plan: Plan) -> dict[str, Any]:
    """The figures that describe the size of a scenario."""
    return {
        "runs": len(runs),
        "duration_s": loaded.duration / units.NANOS_PER_SEC,
        "nodes": len(plan["nodes"]),
        "links": len(plan["links"]) // 2,
        "flows": sum(flow["count"] for flow in plan["flows"]),
    }


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def schema(*, markdown: bool) -> None:
    """Print the JSON schema, or the reference as Markdown."""
    print(scenario_schema.markdown() if markdown else scenario_schema.text(), end="")
