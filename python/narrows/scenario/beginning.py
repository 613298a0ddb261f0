"""The time at which a change happens: a fixed time, or the beginning of a phase of a flow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from narrows.errors import Expected
from narrows.scenario.fields import Int, Name, Table


class Beginning(Table):
    """The beginning of a phase of BBR. Only simulations support it."""

    flow: Name
    """Name of the flow in the results. It is a single TCP flow."""
    phase: Literal["startup", "drain", "down", "cruise", "refill", "up", "probe_rtt", "probe_bw"]
    """The phase. The congestion controller must write its phase to its trace, as the variants of BBR do. In
    BBR v1, ProbeBW is the single phase `probe_bw`."""
    visit: Annotated[Int, Field(ge=1, le=1_000_000)] = 1
    """Number of the flow's visit to the phase, from 1. If the visit does not begin during the run, the change
    does not happen."""


def check_time(time: int | None, when: Beginning | None) -> None:
    """Raise an error if a change has neither a time nor a phase."""
    if time is None and when is None:
        raise Expected("a time, or the beginning of a phase (when = {...})")
