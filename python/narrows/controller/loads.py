"""Computes the loads of links from OpenFlow's port counters."""

from __future__ import annotations

from dataclasses import dataclass

from narrows._native import netcard_rate
from narrows.controller.messages import Counters, PortKey
from narrows.packets import FULL_PACKET


@dataclass(frozen=True, slots=True)
class Load:
    """A port's load between two readings. The load counts L2 bytes, as switches do."""

    tx_bps: float
    rx_bps: float
    netcard_rate: float
    """The result of the BRF paper's equation 5 for the sending direction (0: the capacity is unknown)."""
    utilisation: float | None
    """The rate sent as a fraction of the capacity."""
    dropped: int
    """Sum of the packets that the switch dropped at this port in both directions."""


class Loads:
    """The last load of every port."""

    def __init__(self) -> None:
        self.by_port: dict[PortKey, Load] = {}
        self._last: dict[PortKey, tuple[int, Counters]] = {}

    def read(self, now_ns: int, port: PortKey, counters: Counters, capacity_bps: int | None) -> None:
        """Records new counters of a port and computes its load."""
        last = self._last.get(port)
        self._last[port] = (now_ns, counters)
        if last is None or now_ns <= last[0] or counters.tx_packets < last[1].tx_packets:
            self.by_port.pop(port, None)  # this is the first reading, or the switch has restarted
            return
        before, seconds = last[1], (now_ns - last[0]) / 1e9
        tx_bps = 8 * max(0, counters.tx_bytes - before.tx_bytes) / seconds
        rx_bps = 8 * max(0, counters.rx_bytes - before.rx_bytes) / seconds
        dropped = counters.rx_dropped + counters.tx_dropped - before.rx_dropped - before.tx_dropped
        packets = counters.tx_packets - before.tx_packets
        # Equation 5 of the BRF paper assumes full packets. The result is only displayed. Decisions use byte
        # counters, which are more exact (BRF-70).
        eq5 = netcard_rate(packets, FULL_PACKET, now_ns - last[0], (capacity_bps or 0) // 8)
        used = tx_bps / capacity_bps if capacity_bps else None
        self.by_port[port] = Load(tx_bps, rx_bps, eq5, used, max(0, dropped))

    def is_due(self, now_ns: int, port: PortKey, interval_ns: int) -> bool:
        """Whether the last reading is at least `interval_ns` old.

        A load over a shorter interval is too coarse to display.
        """
        last = self._last.get(port)
        return last is None or now_ns - last[0] >= interval_ns

    def forget(self, dpid: int, port: int | None = None) -> None:
        """Removes a port, or all ports of a switch."""
        for table in (self.by_port, self._last):
            for key in [key for key in table if key[0] == dpid and port in (None, key[1])]:
                del table[key]
