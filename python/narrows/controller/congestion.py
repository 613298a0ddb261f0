"""What BRF's ports are told: polls, congestion, the others' advertisements.

The detector is the simulator's own (`rate::sdn::Sdn`, in Rust).
"""

from __future__ import annotations

import json
from typing import Any

from narrows._native import Sdn
from narrows.controller import bodies
from narrows.controller.agents import Outgoing


class Congestion:
    """The application of BRF's ports.

    Args:
        poll_ns: how often a port is polled, at most (BRF-73).
    """

    def __init__(self, poll_ns: int) -> None:
        self.poll_ns = poll_ns
        self._sdn = Sdn()

    def attach(self, now_ns: int, port: int, info: bodies.PortInfo) -> None:
        """A port joins, or begins anew."""
        params = {"poll": self.poll_ns, "thresholds": info.thresholds}
        self._sdn.attach(now_ns, port, json.dumps(params))

    def detach(self, port: int) -> None:
        """A port leaves."""
        self._sdn.detach(port)

    def hear(
        self,
        now_ns: int,
        port: int,
        body: bodies.Relayed | bodies.FlowChanges,
        message: dict[str, Any],
    ) -> Outgoing:
        """A report or an advertisement."""
        if isinstance(body, bodies.FlowChanges):
            raise ValueError("found flow-changes, which BRF has not")
        return self._sdn.on_message(now_ns, port, json.dumps(message))

    def tick(self, now_ns: int) -> Outgoing:
        """Polls what is due."""
        return self._sdn.on_timer(now_ns)

    def next_timer_ns(self) -> int | None:
        """When `tick` wants to be called next."""
        return self._sdn.next_timer()

    def verdict(self, port: int) -> tuple[float, float, float] | None:
        """The detector's last figures: eq 5, eq 6, arrivals as part of the share."""
        return self._sdn.verdict(port)
