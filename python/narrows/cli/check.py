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
from narrows.plan import Plan
from narrows.scenario import reference
from narrows.scenario import schema as scenario_schema
from narrows.scenario.load import Run, expand, load
from narrows.scenario.model import Scenario
from narrows.scenario.served import notes


def check(
    scenario: Path,
    seed: int | None,
    seeds: int | None,
    override: list[str],
    on: On,
    *,
    show: bool,
    as_json: bool,
) -> None:
    """Check a scenario, and print its size or its plan."""
    loaded = load(scenario, overrides(override, seed))
    runs = expand(loaded, seeds)
    expectations(loaded)
    backend = real_stacks(on) or sweep.simulator()
    plan = sweep.check(runs, sweep.Resolver(backend), backend)
    if show:
        print(json.dumps({"scenario": loaded.full(), "plan": plan}, indent=2))
        return
    facts = _facts(loaded, runs, plan)
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
    print(reference.markdown() if markdown else scenario_schema.text(), end="")
