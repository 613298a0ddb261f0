"""Flows that need the network's help, where nobody in it gives any: rates to obey, or marks to heed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from narrows.scenario.load import Run
from narrows.scenario.model import Controller, Scenario
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
"""Congestion controllers that obey the network, and the kind of rate controller that each needs."""


_BY_OPTION = {("rcp", "ack"), ("bdr", "ack"), ("pacec", "in-band")}
"""Kind and `signal` of rate controllers that answer in ACKs, with BRF's option."""


MARKED = {"dctcp": "Reno"}
"""Congestion controllers that are another one where nobody marks, and which."""


def notes(runs: Iterable[Run]) -> list[str]:
    """What a reader of the runs' figures must know: a sentence for each controller that lacks its help."""
    known = list(runs)
    return unserved(known) + unmarked(known)


def unmarked(runs: Iterable[Run]) -> list[str]:
    """A sentence for each congestion controller that heeds marks, in a run where no queue marks."""
    missing: dict[str, None] = {}
    for run in runs:
        if not any(_marks(queue) for queue in _queues(run.scenario)):
            missing.update(dict.fromkeys(flow.cc for flow in run.scenario.flows if flow.cc in MARKED))
    return [
        f"{cc} heeds marks, but no queue marks (kind 'threshold', or ecn = true): what is measured is "
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
    """A sentence for each congestion controller whose rate controller is missing in a run that has it.

    No error: what such a flow does without an answer (most: CUBIC) is a question that may be asked.
    """
    missing: dict[str, None] = {}
    for run in runs:
        kinds = {_kind(controller) for controller in run.scenario.controllers}
        for flow in run.scenario.flows:
            if flow.cc in SERVED_BY and SERVED_BY[flow.cc] not in kinds:
                missing.setdefault(flow.cc)
    return [
        f"{cc} asks the network for its rate, but no [[controllers]] of kind {SERVED_BY[cc]!r} answers: "
        "what is measured is what it does without"
        for cc in missing
    ]


def _kind(controller: Controller) -> str:
    """What kind of rate controller it is to a sender."""
    return "brf" if (controller.kind, controller.params.get("signal")) in _BY_OPTION else controller.kind
