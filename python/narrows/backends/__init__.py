"""Backends: what runs a plan. All of them return the same tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from narrows.scenario.parts import Plan

Output = Mapping[str, Any]
"""Tables by name (column -> values), and under ``run`` the run's scalars. See `narrows.results.tables`.

A backend that runs in real time adds ``soundness``, for `metadata.json`: ``sound``, ``reasons`` and more.
"""


BY_AGENT = "by narrows-agent"
"""What a backend says of a name that a kernel has not by itself."""


class Backend(Protocol):
    """Runs plans, several at a time."""

    name: str
    most_jobs: int | None
    """Most runs at a time; None: as many as there are cores."""

    def facts(self) -> dict[str, Any]:
        """What `metadata.json` says of where runs happen."""

    def check(self, plan: Plan) -> None:
        """Check a plan without running it.

        Raises:
            ScenarioError: if `run` would refuse it.
        """

    def run(self, plan: Plan) -> Output:
        """Run a plan.

        Raises:
            ScenarioError: if it refuses the plan.
            KeyboardInterrupt: if it was cancelled.
        """

    def cancel(self) -> None:
        """Make all runs end soon; from any thread."""

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Names that a flow's `cc` may take, each with a line about it."""

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Names that a controller's `kind` may take, each with a line about it."""


@runtime_checkable
class HasClock(Protocol):
    """A backend that knows how far its active runs are."""

    def active_seconds(self) -> float:
        """Simulated seconds of all active runs, summed; from any thread."""
