"""What agents said during a run, as rows of the tables. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from narrows.backends.kernel.agents import Agent
from narrows.backends.kernel.layout import Layout
from narrows.backends.kernel.spec import FIRST_PORT
from narrows.scenario.parts import Plan

NOT_EVENTS = frozenset({"ready", "rate-set", "rate-refused"})
"""What an agent logs beside its rate controllers' decisions."""


def events(agent: Agent, log: str, plan: Plan, start: float) -> list[tuple[float, str, str, float]]:
    """Rows (t_s, kind, entity, value) from the JSON lines of a switch's log.

    Args:
        agent: whose log it is.
        log: its lines; those that are no events are passed over.
        plan: has the links' names.
        start: of the run, Unix time in s.
    """
    rows = []
    for line in log.splitlines():
        try:
            entry = json.loads(line)
            when = datetime.fromisoformat(entry["timestamp"]).timestamp() - start
            kind, link = str(entry["event"]), agent.links[entry["port"]]
        except (ValueError, KeyError, TypeError):
            continue
        if kind not in NOT_EVENTS:
            entity = str(entry.get("flow") or plan["links"][link]["name"])
            rows.append((when, kind, entity, float(entry.get("value", float("nan")))))
    return rows


def add_events(output: dict[str, Any], rows: Iterable[tuple[float, str, str, float]]) -> None:
    """Put events into a run's tables, in order of time."""
    ordered = sorted(rows)
    columns = ("t_s", "kind", "entity", "value")
    output["events"] = {name: [row[i] for row in ordered] for i, name in enumerate(columns)}


def add_allocations(
    output: dict[str, Any],
    snapshots: Sequence[Mapping[str, Any]],
    plan: Plan,
    layout: Layout,
    start: int,
) -> None:
    """Fill `allocation_bps` of the flows' samples: the least that the switches on the path had allotted last.

    Only flows that are a single connection: of a group's connections a switch does not know which is whose.

    Args:
        output: tables of a run.
        snapshots: of its switches (crates/narrows-agent/src/status), in order of time.
        plan: what was run.
        layout: where.
        start: of the run, ns of CLOCK_MONOTONIC.
    """
    samples, flows = output["flow_samples"], output["flows"]
    numbers = {flow["name"]: i for i, flow in enumerate(plan["flows"]) if flow["count"] == 1}
    destinations = {
        int(row): f"{layout.endpoints[layout.of_flow[numbers[name]]].to_address}:{FIRST_PORT + numbers[name]}"
        for row, name in zip(flows["flow"], flows["name"], strict=True)
        if name in numbers
    }
    known: dict[tuple[str, str], dict[float, float]] = {}
    for snapshot in snapshots:
        when = (int(snapshot["at"]) - start) / 1e9
        for flow in snapshot["flows"]:
            if flow["allocation"] is not None:
                said = known.setdefault((flow["destination"], snapshot["agent"]), {})
                said[when] = float(flow["allocation"]) * 8
    series = {key: (np.array(list(said)), np.array(list(said.values()))) for key, said in known.items()}
    times, ids = np.asarray(samples["t_s"]), np.asarray(samples["flow"])
    least = np.full(len(times), np.inf)
    for (destination, _), (said_at, value) in series.items():
        for row, name in destinations.items():
            if name == destination:
                mine = np.flatnonzero(ids == row)
                last = np.searchsorted(said_at, times[mine], side="right") - 1
                said_so = last >= 0
                least[mine[said_so]] = np.minimum(least[mine[said_so]], value[last[said_so]])
    samples["allocation_bps"] = np.where(np.isfinite(least), least, np.nan)
