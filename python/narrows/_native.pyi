"""The simulator (crates/narrows-py)."""

from collections.abc import Callable, Mapping
from typing import Any

version: str
"""Version of the crates."""

class PlanError(ValueError):
    """A plan that cannot be run."""

class EmulationError(OSError):
    """The kernel refuses what a run on real stacks needs."""

class Cancel:
    """Ends runs from another thread."""

    def __init__(self) -> None: ...
    def set(self) -> None:
        """Make every run that was given this end soon."""

    def is_set(self) -> bool:
        """Whether `set` was called."""

class Clock:
    """The simulated time of a run in another thread."""

    def __init__(self) -> None: ...
    def nanos(self) -> int:
        """Simulated nanoseconds. The run updates them after each 65536 events, and at its end."""

def run(
    plan_json: str,
    cancel: Cancel | None = None,
    congestion: Mapping[str, type] = ...,
    clock: Clock | None = None,
) -> dict[str, Any]:
    """Run a plan; the interpreter's lock is released meanwhile.

    Args:
        plan_json: the plan.
        cancel: what ends the run early.
        congestion: Python classes by the name that `cc` has in the plan.
        clock: receives the simulated time.

    Raises:
        PlanError: one line, if the plan is refused.
        KeyboardInterrupt: if it was cancelled.
    """

def check(plan_json: str, congestion: list[str] = ...) -> None:
    """Check a plan without running it; `congestion` has the names of Python classes.

    Raises:
        PlanError: one line, if `run` would refuse it.
    """

def congestion_controllers() -> list[tuple[str, str]]:
    """Name and summary of each."""

def congestion_catalogue() -> str:
    """All rows of the catalogue of congestion controllers as JSON; `narrows.congestion` reads it."""

def rate_controllers() -> list[tuple[str, str]]:
    """Name and summary of each."""

def route(plan_json: str, source: int, to: int) -> list[int] | None:
    """Nodes on the path, both ends included; None if there is none."""

class Sdn:
    """The SDN controller of rate control: polls ports and judges their reports (`rate::brf::Sdn`).

    Messages are JSON, as on the agents' channel; times are nanoseconds of one clock.
    What methods return is to be sent: pairs of port and message.
    """

    def __init__(self) -> None: ...
    def attach(self, now_ns: int, port: int, params_json: str) -> None:
        """A port joins, or begins anew. `params_json`: poll period (ns) and thresholds.

        Raises:
            ValueError: one line, if the parameters are not in order.
        """

    def detach(self, port: int) -> None:
        """A port leaves."""

    def on_message(self, now_ns: int, port: int, message_json: str) -> list[tuple[int, str]]:
        """A message from a port.

        Raises:
            ValueError: one line, if it is not a message.
        """

    def on_timer(self, now_ns: int) -> list[tuple[int, str]]:
        """Polls what is due."""

    def next_timer(self) -> int | None:
        """When `on_timer` wants to be called next; None without ports."""

    def verdict(self, port: int) -> tuple[float, float, float] | None:
        """The last figures of a port: eq 5, eq 6, and arrivals as part of the rated class's share."""

class Pacec:
    """PACEC's controller of some ports (`rate::pacec::Pacec`).

    What methods return is to be sent: pairs of port and message.

    Args:
        now_ns: the time.
        mtu: largest IP datagram, bytes.
        ports_json: pairs of port and parameters (base units).

    Raises:
        ValueError: one line, if the parameters are not in order.
    """

    def __init__(self, now_ns: int, mtu: int, ports_json: str) -> None: ...
    def on_report(self, now_ns: int, port: int, message_json: str) -> list[tuple[int, str]]:
        """A report of a port.

        Raises:
            ValueError: one line, if it is none.
        """

    def on_flows(
        self, now_ns: int, port: int, changes_json: str, find: Callable[[str, str], list[int]]
    ) -> list[tuple[int, str]]:
        """Flows that have begun, ended or changed at a port, as a list of `key`, `begun`, `demand`.

        Args:
            now_ns: the time.
            port: which port says so.
            changes_json: the list.
            find: gives the ports that data pass from one address to another, first to last.

        Raises:
            ValueError: one line, if it is no such list.
        """

    def on_timer(self, now_ns: int) -> list[tuple[int, str]]:
        """The end of a control period: new rates."""

    def next_timer(self) -> int | None:
        """When `on_timer` wants to be called next; None without ports."""

    def flows(self) -> int:
        """Flows that it knows."""

    def verdict(self, port: int) -> tuple[float, int] | None:
        """By the last update: utilisation of the port's link, and L3 bytes/s that its flows may have."""

def netcard_rate(packets: int, packet_bytes: int, dt_ns: int, capacity_bytes_per_s: int) -> float:
    """Paper eq 5: packets that left as part of what the link could have carried; 0 without a capacity."""

def emulate(spec_json: str, cancel: Cancel | None = None) -> dict[str, Any]:
    """Run a plan on real Linux stacks, in real time with the interpreter's lock released.

    Args:
        spec_json: the plan and what stands for its nodes and links (crates/narrows-emulator/src/spec.rs).
        cancel: what ends the run early.

    Returns:
        What `run` returns, and `soundness`: whether to trust the run, with the reasons.

    Raises:
        PlanError: one line, if the spec is refused.
        EmulationError: one line, if the kernel refuses something.
        KeyboardInterrupt: if it was cancelled.
    """
