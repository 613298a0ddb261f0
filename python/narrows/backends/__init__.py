"""Backends run plans. All backends return the same tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from narrows.plan import Plan

Output = Mapping[str, Any]
"""Tables by name. Each table maps columns to values. The entry ``run`` is not a table: it maps the names of
the run's counters to their values. See `narrows.results.tables`.

A backend that runs in real time adds ``soundness``: its verdict on the run, which is saved in
`metadata.json`. The keys of ``soundness`` are ``sound``, ``reasons`` and the names of the measurements.

If the run was stopped (`Monitored.stop`), the output also has ``stopped_s``, the simulated time of the stop
in seconds. The entry ``logs`` maps file names to the run's logs. The entry ``capture`` is a temporary folder
with captured packets. The caller must move or remove this folder.
"""

CAPTURE = "capture"
"""The key of an `Output` whose value is the folder with captured packets."""


BY_AGENT = "by narrows-agent"
"""Description of a congestion controller that comes with the agent, not with the kernel."""


class Backend(Protocol):
    """Runs plans. `most_jobs` limits the number of concurrent runs."""

    name: str
    most_jobs: int | None
    """Maximum number of concurrent runs (None: one per core)."""

    def facts(self) -> dict[str, Any]:
        """Facts about the machine, for `metadata.json`."""

    def check(self, plan: Plan) -> None:
        """Check a plan without running it.

        Raises:
            ScenarioError: if `run` would refuse the plan.
        """

    def run(self, plan: Plan) -> Output:
        """Run a plan.

        Raises:
            ScenarioError: if the plan is not valid.
            KeyboardInterrupt: if the run was cancelled.
        """

    def cancel(self) -> None:
        """Tell all runs to end, without waiting for their end. May be called from any thread."""

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Values that a flow's `cc` may have, each with a one-line description."""

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Values that a controller's `kind` may have, each with a one-line description."""


@dataclass(frozen=True)
class Pace:
    """Total progress of all active runs."""

    seconds: float
    """Simulated seconds."""
    events: int
    """Processed events."""


@runtime_checkable
class Monitored(Protocol):
    """A backend whose active runs can be watched and stopped."""

    def begin(self) -> None:
        """Prepare for new runs, even after `stop` or `cancel`."""

    def pace(self) -> Pace:
        """The progress of the active runs. May be called from any thread."""

    def stop(self) -> None:
        """Tell all active runs to end, without waiting for their end.

        The output of each run contains its results up to the stop, and `stopped_s`.

        May be called from any thread.
        """


@runtime_checkable
class TakesClasses(Protocol):
    """A backend whose congestion controllers may be Python classes."""

    def load_class(self, name: str, folder: Path) -> str:
        """Load a Python class from a file.

        Args:
            name: the value of `cc`, FILE.py:CLASS.
            folder: a relative path FILE.py starts at this folder.

        Returns:
            SHA-256 of the file and of the files in its folder that it imports.

        Raises:
            ScenarioError: if the file cannot be imported, or if it does not define the class.
        """

    def check_parameters(self, name: str, params: Mapping[str, Any]) -> None:
        """If `name` is the name of a Python class, check that the class takes these parameters.

        Raises:
            ScenarioError: if the class does not take these parameters.
        """


@runtime_checkable
class Performs(Protocol):
    """A backend on real stacks that performs a paper's own experiment."""

    name: str
    most_jobs: int | None

    def facts(self) -> dict[str, Any]:
        """Facts about the machine."""

    def perform(self, asked: Any) -> dict[str, Any]:
        """Perform a `Transfer` or `Pings` (`narrows.backends.kernel`). Returns reports and port counters."""

    def lacking(self, algorithms: Iterable[str]) -> dict[str, str]:
        """The algorithms in `algorithms` that transfers cannot use, each with the reason."""

    def cancel(self) -> None:
        """Tell all transfers to end, without waiting for their end. May be called from any thread."""
