"""The simulator (crates/narrows-py)."""

from typing import Any

version: str
"""Version of the crates."""

class Cancel:
    """Ends runs from another thread."""

    def __init__(self) -> None: ...
    def set(self) -> None:
        """Make every run that was given this end soon."""

    def is_set(self) -> bool:
        """Whether `set` was called."""

def run(plan_json: str, cancel: Cancel | None = None) -> dict[str, Any]:
    """Run a plan; the interpreter's lock is released meanwhile.

    Raises:
        ValueError: one line, if the plan is refused.
        KeyboardInterrupt: if it was cancelled.
    """

def check(plan_json: str) -> None:
    """Check a plan without running it.

    Raises:
        ValueError: one line, if `run` would refuse it.
    """

def congestion_controllers() -> list[tuple[str, str]]:
    """Name and summary of each."""

def rate_controllers() -> list[tuple[str, str]]:
    """Name and summary of each."""

def route(plan_json: str, source: int, to: int) -> list[int] | None:
    """Nodes on the path, both ends included; None if there is none."""
