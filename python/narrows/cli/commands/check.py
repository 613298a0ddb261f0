"""`narrows check` and `narrows schema`: their parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from narrows.cli.commands.shared import Backend, Json, On, Overrides, ScenarioFile, Seed, Seeds


def check(
    scenario: ScenarioFile,
    seed: Seed = None,
    seeds: Seeds = None,
    override: Overrides = None,
    on: Backend = On.SIM,
    show: Annotated[
        bool,
        typer.Option("--show", help="Print the scenario with all defaults and the plan of its first run."),
    ] = False,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Print only the plan of the first run, in the form that Rust programs read. `cc` can name a "
            "controller of such a program.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a scenario without running it.

    With --on kernel or vm, a feature that only the simulator supports is an error.
    """
    from narrows.cli import check as work  # noqa: PLC0415

    work.check(scenario, seed, seeds, override or [], on, show=show, plan=plan, as_json=as_json)


def schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference as Markdown instead.")
    ] = False,
) -> None:
    """Print the JSON schema of scenario files."""
    from narrows.cli import check as work  # noqa: PLC0415

    work.schema(markdown=markdown)
