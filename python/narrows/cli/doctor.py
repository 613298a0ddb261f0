"""`narrows doctor`: what this machine has of what Narrows can use, all at once."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from narrows.backends.kernel import features
from narrows.backends.kernel.features import Finding
from narrows.cli.figures import WIDEST

PARTS = {"sim": "simulate", "kernel": "run --on kernel", "deploy": "narrows-agent"}
"""What may be ready, and which command that is."""
NOT_READY = 1


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what works here: the simulator, the kernel backend, the deployment; and what the others lack."""
    findings = examine()
    ready = readiness(findings)
    controls = features.congestion_controls()
    if as_json:
        print(json.dumps(as_data(findings, ready, controls), indent=2))
    else:
        show(findings, ready, controls, Console(width=WIDEST))
    if not ready["sim"]:
        raise typer.Exit(NOT_READY)


def examine() -> list[Finding]:
    """Everything that is looked for, in the order of the table."""
    return [
        features.native(),
        features.emulator(),
        features.root(),
        *features.tools(),
        *features.qdiscs(),
        *features.kernel(),
        features.agent(),
        features.controller(),
    ]


def readiness(findings: list[Finding]) -> dict[str, bool]:
    """Which parts have all that they cannot do without."""
    return {part: all(f.have for f in findings if part in f.needed) for part in PARTS}


def show(findings: list[Finding], ready: dict[str, bool], controls: list[str], console: Console) -> None:
    """Print the findings, and what is ready."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("", "found", "needed by", "for", "what would do"):
        table.add_column(title, no_wrap=True)
    for finding in findings:
        table.add_row(
            finding.name,
            (finding.detail or "yes") if finding.have else "no",
            ", ".join(finding.needed) or "-",
            finding.use,
            "" if finding.have else finding.remedy,
        )
    console.print(table, highlight=False)
    console.print(
        f"\nLinux {os.uname().release}; congestion controls: {', '.join(controls) or 'none found'}",
        highlight=False,
    )
    for part, what in PARTS.items():
        lacks = [f.name for f in findings if part in f.needed and not f.have]
        console.print(
            f"{part} ({what}): {'ready' if ready[part] else 'lacks ' + ', '.join(lacks)}", highlight=False
        )


def as_data(findings: list[Finding], ready: dict[str, bool], controls: list[str]) -> dict[str, Any]:
    """The findings for other programs."""
    return {
        "kernel": os.uname().release,
        "ready": ready,
        "congestion_controls": controls,
        "findings": [
            {
                "name": f.name,
                "have": f.have,
                "needed_by": list(f.needed),
                "use": f.use,
                "remedy": f.remedy,
                "detail": f.detail,
            }
            for f in findings
        ],
    }
