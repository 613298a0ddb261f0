"""Finds properties of a scenario that readers of its results should know.

For example, flows lack the rates or marks that they need, or all flows start at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from narrows import congestion, rate, stacks
from narrows.scenario.entries import entries
from narrows.scenario.load import Run
from narrows.scenario.model import RateController, Scenario
from narrows.scenario.network import Queue, Threshold


def served_by() -> dict[str, str]:
    """For each congestion controller that gets its rate from the network: the rate controller it needs."""
    return {name: row.service.kind for name, row, _ in congestion.names() if row.service is not None}


def marked() -> dict[str, str]:
    """For each congestion controller that depends on marks, the controller that it equals without marks."""
    return {name: row.marks_or_else for name, row, _ in congestion.names() if row.marks_or_else is not None}


def notes(runs: Iterable[Run]) -> list[str]:
    """Notes for readers of the results.

    There is a sentence for each congestion controller that needs rates or marks but gets none, and for each
    preset. Another sentence is about flows that start at the same time.
    """
    known = list(runs)
    return unserved(known) + unmarked(known) + presets(known) + together(known)


def together(runs: Iterable[Run]) -> list[str]:
    """A sentence if TCP flows start at the same time, with the largest number of such flows in a run.

    If flows start at the same time, the results depend on the order of their first packets. This order
    decides, for example, which flows lose packets.
    """
    # Runs of a point differ only in their seeds.
    points = {id(run.point): run.point for run in runs}.values()
    most = max(map(_most_together, points), default=0)
    if most < 2:
        return []
    return [
        f"{most} flows start at the same time, so the order of their first packets can decide their shares. "
        "To start each at a random time, set start_jitter = '1ms'"
    ]


def _most_together(scenario: Scenario) -> int:
    starts: Counter[int] = Counter()
    for entry in entries(scenario):
        flow = entry.flow
        can_vary = flow.transport != "udp" and flow.program is None and flow.arrivals is None
        if can_vary and not flow.start_jitter:
            starts[flow.start] += flow.count if not flow.spacing else 1
    return max(starts.values(), default=0)


def unmarked(runs: Iterable[Run]) -> list[str]:
    """A sentence for each congestion controller that reacts to marks and has a run without marking queues."""
    missing: dict[str, None] = {}
    otherwise = marked()
    for run in runs:
        if not any(_marks(queue) for queue in _queues(run.scenario)):
            missing.update(dict.fromkeys(name for name in _names(run.scenario) if name in otherwise))
    return [
        f"{cc} reacts to ECN marks, but no queue marks (kind 'threshold', or ecn = true): the results show "
        f"{otherwise[cc]}"
        for cc in missing
    ]


def presets(runs: Iterable[Run]) -> list[str]:
    """A sentence for each preset. A preset is a name for an algorithm with certain parameters."""
    used = dict.fromkeys(name for run in runs for name in _names(run.scenario))
    found = ((name, congestion.find(name)) for name in used)
    return [
        f"{name} is a preset: cc = {congestion.spelled(row, preset)} gives the same results"
        for name, (row, preset) in ((name, known) for name, known in found if known is not None)
        if preset is not None
    ]


def _names(scenario: Scenario) -> list[str]:
    """The names of the flows' congestion controllers, without names that are not in the catalogue."""
    names = (stacks.catalogue_name(flow.transport, flow.cc.name) for flow in scenario.flows)
    return [name for name in names if name is not None]


def _queues(scenario: Scenario) -> Iterator[Queue]:
    for link in (scenario.topology, *scenario.links):
        for traits in (link, getattr(link, "back", None)):
            queue = getattr(traits, "queue", None)
            if queue is not None:
                yield queue


def _marks(queue: Queue) -> bool:
    return isinstance(queue, Threshold) or bool(getattr(queue, "ecn", False))


def unserved(runs: Iterable[Run]) -> list[str]:
    """A sentence for each congestion controller whose rate controller is missing in a run.

    A missing rate controller is not an error, because a user may want to see how the congestion controller
    behaves without one. Without a rate, most of these congestion controllers behave like CUBIC.
    """
    missing: dict[str, None] = {}
    needed = served_by()
    for run in runs:
        kinds = {_kind(controller) for controller in run.scenario.rate_controllers}
        missing.update(
            dict.fromkeys(n for n in _names(run.scenario) if n in needed and needed[n] not in kinds)
        )
    return [
        f"{cc} asks the network for its rate, but no [[rate_controllers]] of kind {needed[cc]!r} exists: "
        "the results show its behaviour without an answer"
        for cc in missing
    ]


def _kind(controller: RateController) -> str:
    """The kind of rate controller whose feedback senders see."""
    # With the parameters for unmodified hosts, rate controllers write rates into ACKs, in BRF's TCP option.
    alternatives = rate.on_switches().get(controller.kind)
    writes = alternatives and all(controller.params.get(k) == value for k, value in alternatives[0].items())
    return "brf" if writes else controller.kind
