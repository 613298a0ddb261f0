"""The work of `narrows doctor`."""

from __future__ import annotations

import json
import os
from typing import Any

import typer
from rich.console import Console

from narrows.backends.kernel import features, namespaces, running
from narrows.backends.kernel.features import Finding
from narrows.backends.vm import features as guests
from narrows.cli.console import plain
from narrows.cli.table import Table

PARTS = {"sim": "simulate", "kernel": "run --on kernel", "vm": "run --on vm", "deploy": "narrows-agent"}
"""Parts of Narrows that have requirements, each with the command that uses the part."""
NOT_READY = 1
MOST_NAMED = 4
"""Maximum number of printed namespaces of dead runs. `--json` prints all."""


def doctor(*, as_json: bool) -> None:
    """Print the findings, and exit with 1 if the simulator does not work."""
    findings = examine()
    ready = readiness(findings)
    controls = features.congestion_controls()
    remains = namespaces.remains()
    waiting = running.waiting()
    if as_json:
        data = as_data(findings, ready, controls) | {"remains": remains, "waiting": waiting}
        print(json.dumps(data, indent=2))
    else:
        show(findings, ready, controls, plain())
        for agent, absent in waiting.items():
            plain().print(f"agent {agent} waits for: {', '.join(absent)}")
        if remains:
            plain().print(left_over(remains))
    if not ready["sim"]:
        raise typer.Exit(NOT_READY)


def examine() -> list[Finding]:
    """All findings, in the order in which the table shows them."""
    return [
        features.native(),
        features.emulator(),
        features.root(),
        *features.tools(),
        *features.qdiscs(),
        *features.kernel(),
        features.agent(),
        features.controller(),
        *guests.findings(),
    ]


def readiness(findings: list[Finding]) -> dict[str, bool]:
    """For each part, whether all its requirements are present."""
    return {part: all(f.have for f in findings if part in f.needed) for part in PARTS}


def show(findings: list[Finding], ready: dict[str, bool], controls: list[str], console: Console) -> None:
    """Print whether each part is ready, and the findings."""
    for part, what in PARTS.items():
        console.print(
            f"{part} ({what}): {'ready' if ready[part] else 'lacks ' + ', '.join(lacking(findings, part))}"
        )
    console.print()
    table = Table()
    table.add_name()
    table.add_name("needed by")
    table.add_text("for")
    table.add_text("found")
    for finding in findings:
        table.add_row(finding.name, ", ".join(finding.needed) or "-", finding.use, _found(finding))
    table.print(console)
    console.print(
        f"\nLinux {os.uname().release}; with --on kernel cc may be: {', '.join(controls) or 'none found'}"
    )


def _found(finding: Finding) -> str:
    """The finding's detail, or the remedy if the requirement is missing."""
    if finding.have:
        return finding.detail or "yes"
    return f"{'no' if finding.tried else 'not tried'}: {finding.remedy}"


def lacking(findings: list[Finding], part: str) -> list[str]:
    """Missing requirements of a part.

    A requirement that could not be tried is named only if all other requirements are present.
    """
    missing = [finding for finding in findings if part in finding.needed and not finding.have]
    return [finding.name for finding in missing if finding.tried] or [finding.name for finding in missing]


def left_over(remains: list[str]) -> str:
    """A line about namespaces of dead runs, and how to remove them."""
    named = ", ".join(remains[:MOST_NAMED]) + (", ..." if len(remains) > MOST_NAMED else "")
    return (
        f"left by runs that were killed: {len(remains)} namespace{'s' * (len(remains) != 1)} ({named}); "
        "the next run --on kernel removes them, or: ip netns delete NAME"
    )


def as_data(findings: list[Finding], ready: dict[str, bool], controls: list[str]) -> dict[str, Any]:
    """The findings as data for other programs."""
    return {
        "kernel": os.uname().release,
        "ready": ready,
        "congestion_controls": controls,
        "findings": [
            {
                "name": f.name,
                "have": f.have,
                "tried": f.tried,
                "needed_by": list(f.needed),
                "use": f.use,
                "remedy": f.remedy,
                "detail": f.detail,
            }
            for f in findings
        ],
    }
