"""The application for BRF's ports, which handles polls, congestion, and advertisements of other ports.

The detector is the simulator's code (`rate::brf::Sdn`, in Rust).
"""

from __future__ import annotations

from narrows._native import FlowChanges, Message, PortInfo, Sdn
from narrows.controller.agents import Outgoing


class Congestion:
    """The application for BRF's ports.

    Args:
        poll_ns: longest interval between polls of a port (BRF-73).
    """

    def __init__(self, poll_ns: int) -> None:
        self.poll_ns = poll_ns
        self._sdn = Sdn()

    def attach(self, now_ns: int, port: int, info: PortInfo) -> None:
        """Adds a port. If the port is already known, its control starts from the beginning."""
        self._sdn.attach(now_ns, port, self.poll_ns, info)

    def detach(self, port: int) -> None:
        """Removes a port."""
        self._sdn.detach(port)

    def on_message(self, now_ns: int, port: int, body: Message | FlowChanges) -> Outgoing:
        """Handles a report or an advertisement."""
        if isinstance(body, FlowChanges):
            raise ValueError("BRF does not support 'flow-changes'")
        return self._sdn.on_message(now_ns, port, body)

    def tick(self, now_ns: int) -> Outgoing:
        """Polls the ports whose next poll is due."""
        return self._sdn.on_timer(now_ns)

    def next_timer_ns(self) -> int | None:
        """Time of the next call of `tick`."""
        return self._sdn.next_timer()

    def verdict(self, port: int) -> tuple[float, float, float] | None:
        """The latest results of the congestion detector.

        The first two values are the results of equations 5 and 6 of the BRF paper. The third value is the
        arrivals of the rated class (the flows with rates) as a fraction of the share of this class.
        """
        return self._sdn.verdict(port)
