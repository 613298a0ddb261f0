"""The simulator (crates/narrows-py)."""

from collections.abc import Mapping
from typing import Any

version: str
"""Version of the crates."""

class PlanError(ValueError):
    """A plan that cannot be run."""

class Cancel:
    """Ends runs from another thread."""

    def __init__(self) -> None: ...
    def set(self) -> None:
        """Make every run that was given this end soon."""

    def is_set(self) -> bool:
        """Whether `set` was called."""

def run(
    plan_json: str, cancel: Cancel | None = None, controllers: Mapping[str, type] = ...
) -> dict[str, Any]:
    """Run a plan; the interpreter's lock is released meanwhile.

    Args:
        plan_json: the plan.
        cancel: what ends the run early.
        controllers: Python classes by the name that `cc` has in the plan.

    Raises:
        PlanError: one line, if the plan is refused.
        KeyboardInterrupt: if it was cancelled.
    """

def check(plan_json: str, controllers: list[str] = ...) -> None:
    """Check a plan without running it; `controllers` are names of Python classes.

    Raises:
        PlanError: one line, if `run` would refuse it.
    """

def congestion_controllers() -> list[tuple[str, str]]:
    """Name and summary of each."""

def rate_controllers() -> list[tuple[str, str]]:
    """Name and summary of each."""

def route(plan_json: str, source: int, to: int) -> list[int] | None:
    """Nodes on the path, both ends included; None if there is none."""
