"""Finds flows that depend on rates or marks from the network in scenarios without any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from narrows.scenario.load import Run
from narrows.scenario.model import RateController, Scenario
from narrows.scenario.network import Queue, Threshold

SERVED_BY = {
    "brf": "brf",
    "brf-literal": "brf",
    "pacec": "pacec",
    "rcp": "rcp",
    "xcp": "xcp",
    "bdr": "bdr",
    "bdr-literal": "bdr",
    "obp": "obp",
}
"""Congestion controllers that follow rates from the network, and the rate controller that each needs."""


_BY_OPTION = {("rcp", "ack"), ("bdr", "ack"), ("pacec", "in-band")}
"""Kind and `signal` of rate controllers that write rates into ACKs with BRF's option."""


MARKED = {"dctcp": "Reno"}
"""Congestion controllers that, without marks, behave like another controller."""


def notes(runs: Iterable[Run]) -> list[str]:
    """Notes for readers of the results: a sentence for each controller without rates or marks."""
    known = list(runs)
    return unserved(known) + unmarked(known)


def unmarked(runs: Iterable[Run]) -> list[str]:
    """A sentence for each congestion controller that reacts to marks, in a run without a marking queue."""
    missing: dict[str, None] = {}
    for run in runs:
        if not any(_marks(queue) for queue in _queues(run.scenario)):
            missing.update(dict.fromkeys(flow.cc for flow in run.scenario.flows if flow.cc in MARKED))
    return [
        f"{cc} reacts to ECN marks, but no queue marks (kind 'threshold', or ecn = true): the results show "
        f"{MARKED[cc]}"
        for cc in missing
    ]


def _queues(scenario: Scenario) -> Iterator[Queue]:
    for link in (scenario.topology, *scenario.links):
        for traits in (link, getattr(link, "back", None)):
            queue = getattr(traits, "queue", None)
            if queue is not None:
                yield queue


def _marks(queue: Queue) -> bool:
    return isinstance(queue, Threshold) or bool(getattr(queue, "ecn", False))


def unserved(runs: Iterable[Run]) -> list[str]:
    """A sentence for each congestion controller whose rate controller is missing in the run.

    This is not an error, because the behaviour without an answer (mostly CUBIC) may be of interest.
    """
    missing: dict[str, None] = {}
    for run in runs:
        kinds = {_kind(controller) for controller in run.scenario.rate_controllers}
        for flow in run.scenario.flows:
            if flow.cc in SERVED_BY and SERVED_BY[flow.cc] not in kinds:
                missing.setdefault(flow.cc)
    return [
        f"{cc} asks the network for its rate, but no [[rate_controllers]] of kind {SERVED_BY[cc]!r} exists: "
        "the results show its behaviour without an answer"
        for cc in missing
    ]


def _kind(controller: RateController) -> str:
    """The kind of a rate controller as its senders see it."""
    return "brf" if (controller.kind, controller.params.get("signal")) in _BY_OPTION else controller.kind
