"""The work of `narrows list`."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable

from rich.text import Text

from narrows import _native, congestion, retired, stacks, sweep
from narrows.cli.console import plain
from narrows.cli.table import Table
from narrows.errors import ScenarioError, choice
from narrows.results.measures import MEASURES, choices
from narrows.scenario import hub

Rows = list[tuple[str, str]]


NAMED = "named"
"""Kind of published networks. Lists of topologies omit this kind, because a scenario gives the name of the
network instead."""


def _networks() -> Rows:
    """Values of `name` in [topology]. The names of topohub are summarised by family."""
    own, others = _native.scenario_networks(hub.folder())
    families = Counter(name.split("/")[0] for name in others)
    return own + [(f"{family}/...", f"{n} of the package topohub") for family, n in sorted(families.items())]


def _measures() -> Rows:
    """Measures for expectations, each with its arguments."""
    rows = []
    for item in MEASURES.values():
        parameters = list(inspect.signature(item.function).parameters.values())[1:]
        values = choices(item)
        given = ", ".join(
            (p.name if p.default is p.empty else f"{p.name} = {json.dumps(p.default)}")
            + (f" ({'|'.join(values[p.name])})" if p.name in values else "")
            for p in parameters
        )
        unit = f" ({item.unit})" if item.unit else ""
        rows.append((item.name, f"{item.title}{unit}{f': {given}' if given else ''}"))
    return rows


def _stacks() -> Rows:
    """The stacks that `transport` can name, with their own congestion controllers."""
    return [(name, f"cc of its own: {', '.join(own)}") for name, own in stacks.controllers().items()]


FAMILIES = ("as in Linux", "beyond Linux", "by the network")
"""Headings for three groups of congestion controllers: controllers in Linux, controllers that Linux does not
have, and controllers that get rates from the network."""


def _family(name: str) -> str:
    linux, beyond, network = FAMILIES
    row, preset = congestion.find(name) or (None, None)
    if row is None or (row.linux is not None and preset is not None):
        return beyond
    return linux if row.linux is not None else network if row.service is not None else beyond


def _entry(kind: str, name: str, about: str) -> dict[str, str]:
    entry = {"name": name, "summary": about}
    return entry | {"family": _family(name)} if kind == "congestion" else entry


KINDS: dict[str, Callable[[], Rows]] = {
    "congestion": lambda: sweep.simulator().congestion_controllers(),
    "rate": lambda: sweep.simulator().rate_controllers(),
    "stacks": _stacks,
    "queues": lambda: _native.scenario_choices("Link", "queue"),
    "topologies": lambda: [row for row in _native.scenario_choices("Content", "topology") if row[0] != NAMED],
    "networks": _networks,
    "loss": lambda: _native.scenario_choices("Link", "loss"),
    "measures": _measures,
}


def list_names(kind: str | None, *, as_json: bool) -> None:
    """Print the names of one kind, or of all.

    Raises:
        ScenarioError: for an unknown kind.
    """
    asked = kind
    if kind is not None:
        kind = retired.current(kind, retired.KINDS, "narrows list")
        if kind not in KINDS:
            raise ScenarioError(choice(kind, KINDS), "list")
    if as_json:
        # A program that asks for a kind by its old name gets the list under the old name.
        names = {
            (asked or name): [_entry(name, *row) for row in KINDS[name]()]
            for name in ([kind] if kind else KINDS)
        }
        print(json.dumps(names, indent=2))
        return
    console = plain()
    for name in [kind] if kind else list(KINDS):
        table = Table()
        table.add_name(style="bold")
        table.add_text()
        rows = KINDS[name]()
        families = FAMILIES if name == "congestion" else ("",)
        for family in families:
            if family:
                table.add_row(Text(family, "not bold dim"), "")
            for entry, about in rows:
                if not family or _family(entry) == family:
                    table.add_row(entry, about)
        if kind is None:
            console.print(Text(name, "bold underline"))
        table.print(console)
