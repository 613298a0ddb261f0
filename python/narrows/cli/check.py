"""`narrows check` and `narrows schema`: is a scenario in order, and what may one hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from narrows import sweep, units
from narrows.cli.run import On, real_stacks
from narrows.scenario import reference
from narrows.scenario import schema as scenario_schema
from narrows.scenario.load import expand, load, parse_override
from narrows.scenario.served import notes


def check(
    scenario: Annotated[Path, typer.Argument(help="A scenario file (TOML).", show_default=False)],
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Replace a value, e.g. topology.rate=20mbit; may be repeated."
        ),
    ] = None,
    on: Annotated[
        On, typer.Option("--on", help="What is to run it: real stacks refuse what the simulator can do.")
    ] = On.SIM,
    show: Annotated[
        bool,
        typer.Option("--show", help="Print the scenario with all defaults, and the plan of its first run."),
    ] = False,
) -> None:
    """Check a scenario without running it."""
    loaded = load(scenario, dict(parse_override(text) for text in override or []))
    runs = expand(loaded)
    backend = real_stacks(on) or sweep.simulator()
    plan = sweep.check(runs, sweep.Resolver(backend), backend)
    if show:
        print(json.dumps({"scenario": loaded.full(), "plan": plan}, indent=2))
        return
    flows = sum(flow["count"] for flow in plan["flows"])
    print(
        f"{scenario}: {_many(len(runs), 'run')} of {units.format_duration(loaded.duration)}, "
        f"{_many(len(plan['nodes']), 'node')}, {_many(len(plan['links']) // 2, 'link')}, "
        f"{_many(flows, 'flow')}"
    )
    for note in notes(runs):
        print(f"note: {note}")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference that people read, as Markdown.")
    ] = False,
) -> None:
    """Print what a scenario file may hold: as JSON schema for editors, or as Markdown."""
    print(reference.markdown() if markdown else scenario_schema.text(), end="")
