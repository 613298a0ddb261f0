"""Converts the agents' logs and snapshots of a run into rows of the tables.

The functions have no side effects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from narrows import _native
from narrows.backends.kernel.agents import Agent
from narrows.backends.kernel.layout import Layout
from narrows.backends.kernel.spec import source_ports
from narrows.plan import Plan

NOT_EVENTS = frozenset({"ready", "rate-set", "rate-refused", "set-class"})
"""Kinds of log entries that are not decisions of rate controllers."""


def names(plan: Plan, layout: Layout) -> dict[tuple[str, str], str]:
    """Names of flows and of members of groups.

    The keys are pairs of ends, which agents write as "address:port".
    """
    found = {}
    for number, (flow, first) in enumerate(zip(plan["flows"], source_ports(plan), strict=True)):
        if first is None:
            continue
        ends = layout.endpoints[layout.of_flow[number]]
        to = f"{ends.to_address}:{_native.FIRST_PORT + number}"
        for member in range(flow["count"]):
            name = flow["name"] if flow["count"] == 1 else f"{flow['name']}.{member}"
            found[f"{ends.source_address}:{first + member}", to] = name
    return found


def events(
    agent: Agent, log: str, plan: Plan, layout: Layout, start: float
) -> list[tuple[float, str, str, float]]:
    """Rows (t_s, kind, entity, value) from the JSON lines of a switch's log.

    Args:
        agent: the agent that wrote the log.
        log: the log's lines; lines that are not events are ignored.
        plan: the plan, for the links' names.
        layout: the layout, for the flows' addresses.
        start: start of the run, Unix time in s.
    """
    rows = []
    flows = names(plan, layout)
    for line in log.splitlines():
        try:
            entry = json.loads(line)
            when = datetime.fromisoformat(entry["timestamp"]).timestamp() - start
            kind, link = str(entry["event"]), agent.links[entry["port"]]
        except (ValueError, KeyError, TypeError):
            continue
        if kind not in NOT_EVENTS:
            entity = _flow(str(entry["flow"]), flows) if "flow" in entry else plan["links"][link]["name"]
            rows.append((when, kind, entity, float(entry.get("value", float("nan")))))
    return rows


def _flow(said: str, flows: Mapping[tuple[str, str], str]) -> str:
    """The name of a flow in the plan. A flow that is not in the plan keeps the agent's name for it.

    The agent's names are defined in crates/narrows-agent/src/events.rs.
    """
    source, _, rest = said.partition(">")
    return flows.get((source, rest.partition("/")[0]), said)


def add_events(output: dict[str, Any], rows: Iterable[tuple[float, str, str, float]]) -> None:
    """Add events to a run's tables, in order of time."""
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
    """Fill `allocation_bps` of the flows' samples with the minimum of the latest allocations on the path.

    Args:
        output: the tables of a run.
        snapshots: snapshots of its switches (crates/narrows-agent/src/status), in order of time.
        plan: the plan of the run.
        layout: the layout of the run.
        start: start of the run, ns of CLOCK_MONOTONIC.
    """
    samples, flows = output["flow_samples"], output["flows"]
    by_name = {name: ends for ends, name in names(plan, layout).items()}
    rows = {
        by_name[name]: int(row)
        for row, name in zip(flows["flow"], flows["name"], strict=True)
        if name in by_name
    }
    known: dict[tuple[int, str], dict[float, float]] = {}
    for snapshot in snapshots:
        when = (int(snapshot["at"]) - start) / 1e9
        for flow in snapshot["flows"]:
            row = rows.get((flow["source"], flow["destination"]))
            if row is not None and flow["allocation"] is not None:
                said = known.setdefault((row, snapshot["agent"]), {})
                said[when] = float(flow["allocation"]) * 8
    series = {key: (np.array(list(said)), np.array(list(said.values()))) for key, said in known.items()}
    times, ids = np.asarray(samples["t_s"]), np.asarray(samples["flow"])
    least = np.full(len(times), np.inf)
    for (row, _), (said_at, value) in series.items():
        mine = np.flatnonzero(ids == row)
        last = np.searchsorted(said_at, times[mine], side="right") - 1
        said_so = last >= 0
        least[mine[said_so]] = np.minimum(least[mine[said_so]], value[last[said_so]])
    samples["allocation_bps"] = np.where(np.isfinite(least), least, np.nan)
