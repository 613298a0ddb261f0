"""Flows that ask the network for their rate, where nobody in it answers."""

from __future__ import annotations

from collections.abc import Iterable

from narrows.scenario.load import Run
from narrows.scenario.model import Controller

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
