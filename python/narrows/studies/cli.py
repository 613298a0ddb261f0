"""`narrows study`: run a paper's experiments, judge its claims, write the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from narrows.studies.judge import Verdict
from narrows.studies.load import find_study, known_studies, load_study
from narrows.studies.runner import Outcome, run_study

_STYLE = {Verdict.REPRODUCED: "green", Verdict.NOT_REPRODUCED: "red", Verdict.UNJUDGED: "yellow"}


def study(
    name: Annotated[
        str | None,
        typer.Argument(help="A study by name (e.g. brf) or folder; a list if left out.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and report; results/<name> if left out.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds, shorter runs, fewer points.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="An experiment, e.g. E1; may be repeated.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Runs at a time; one per core if left out.")
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Take tables of an earlier run, where they are.")
    ] = False,
    figures: Annotated[bool, typer.Option(help="Write figures as SVG, PNG and PDF too.")] = True,
) -> None:
    """Run every experiment of a paper, judge its claims and write one HTML report."""
    # Drawing libraries are slow to import, and `narrows --help` should not be.
    from narrows.report import write  # noqa: PLC0415

    if name is None:
        for known in known_studies():
            print(f"{known}: {load_study(find_study(known)).title}")
        return
    loaded = load_study(find_study(name))
    folder = out if out is not None else Path("results") / f"{loaded.id}{'-quick' if quick else ''}"
    outcome = run_study(loaded, folder, quick=quick, only=only or (), jobs=jobs, reuse=reuse, say=_say)
    report = write(outcome, folder, files=figures, say=_say)
    _show(outcome, Console())
    print(f"report in {report}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _show(outcome: Outcome, console: Console) -> None:
    """The verdicts as a table."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("claim", "says", "paper", "verdict"):
        table.add_column(column, ratio=3 if column == "says" else None)
    for finding in outcome.findings:
        verdict = f"[{_STYLE[finding.verdict]}]{finding.words}[/]\n[dim]{finding.why}[/]"
        table.add_row(finding.claim.id, finding.claim.says, finding.claim.value, verdict)
    console.print(table)
    for note in outcome.notes:
        console.print(note, highlight=False)
