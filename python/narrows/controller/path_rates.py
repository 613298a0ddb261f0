"""The application for PACEC, which computes a flow's rate from counters of all links on its path (PAC-1).

The control law is the simulator's code (`rate::pacec::Pacec`, in Rust). Links are measured in two ways.
Agents of PACEC report the queues of their ports, and the traffic of their ports by class. For ports without
such an agent, the controller reads OpenFlow's counters, which have only bytes and packets. Ports without an
agent therefore follow PACEC's incremental law (PAC-19). The computed rates are sent to the agents at the
ports where flows begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from narrows._native import FlowChanges, Message, Pacec, PacecParams, PortInfo
from narrows.controller.agents import Numbers, Outgoing
from narrows.controller.messages import Counters, PortKey
from narrows.packets import ETHERNET, FULL_PACKET
from narrows.units import format_duration

NAME = "pacec"
LEAST_INTERVAL_NS = 20_000_000
"""Shortest interval between readings of a switch's counters. Switches send 95 % of their answers within 12
ms."""
_WIRE_BYTES = 38
"""Bytes of Ethernet's preamble, header, FCS and gap for each IP datagram."""
_LEAST_PERIOD_NS = 5_000_000
"""Minimum control period of a port. `attach` refuses a shorter period, because the controller might be too
slow for it."""
_KIND = "counted"
"""First part of the key that `Numbers` has for a port without an agent of PACEC."""


def l3(wire_bps: int) -> int:
    """The L3 rate of full-sized IP datagrams on a wire with this rate."""
    return wire_bps * FULL_PACKET // (FULL_PACKET + _WIRE_BYTES)


@dataclass(frozen=True, slots=True)
class Place:
    """A port without an agent of PACEC, whose counters are read."""

    port: PortKey
    capacity_bps: int


class PathRates:
    """The application for PACEC's ports.

    Args:
        numbers: the numbers of the domain's ports.
        find: returns the numbers of the ports on the path from one address to another, in order. The list is
            empty if an address is unknown.
    """

    def __init__(self, numbers: Numbers, find: Callable[[str, str], list[int]]) -> None:
        self._numbers = numbers
        self._find = find
        self._agents: dict[int, PacecParams] = {}
        self._counted: dict[int, Place] = {}
        self._switches: list[int] = []
        self._ports: list[tuple[int, PacecParams]] = []
        """The ports with which the current `_pacec` was created."""
        self._pacec: Pacec | None = None
        self._changed = True

    @property
    def active(self) -> bool:
        """Whether any agent needs rates."""
        return bool(self._agents)

    @property
    def interval_ns(self) -> int:
        """Interval between readings of counters: the control period of the first port with an agent."""
        period_ns = self._agents[min(self._agents)].period_ns if self._agents else 0
        return max(LEAST_INTERVAL_NS, period_ns)

    def attach(self, now_ns: int, port: int, info: PortInfo) -> None:  # noqa: ARG002 (of the protocol)
        """Adds a port. If the port is already known, its control starts from the beginning."""
        params = PacecParams(info)
        if params.period_ns < _LEAST_PERIOD_NS:
            given, least = format_duration(params.period_ns), format_duration(_LEAST_PERIOD_NS)
            raise ValueError(f"found a control period of {given}, expected at least {least}")
        self._agents[port] = params
        self._changed = True

    def detach(self, port: int) -> None:
        """Removes a port.

        If `attach` does not add the port again before the next message or `tick`, the flows that began at the
        port are removed, too.
        """
        if self._agents.pop(port, None) is not None:
            self._changed = True

    def set_counted(self, places: Iterable[Place]) -> None:
        """Sets the ports without an agent of PACEC, whose counters are read by OpenFlow."""
        counted = {self._numbers.of((_KIND, place.port)): place for place in places}
        if counted != self._counted:
            self._counted = counted
            self._switches = sorted({place.port[0] for place in counted.values()})
            self._changed = True

    def switches(self) -> list[int]:
        """Datapath ids of the switches whose counters are needed."""
        return self._switches if self.active else []

    def number(self, port: PortKey) -> int | None:
        """The number of a port whose counters are read (None: the port's counters are not read)."""
        number = self._numbers.of((_KIND, port))
        return number if number in self._counted else None

    def on_message(self, now_ns: int, port: int, body: Message | FlowChanges) -> Outgoing:
        """Handles a report, or flows that began, ended or changed."""
        pacec = self._law(now_ns)
        if isinstance(body, FlowChanges):
            return pacec.on_flows(now_ns, port, body, self._find)
        if body.type != "report":
            raise ValueError(f"PACEC does not support {body.type!r}")
        return pacec.on_report(now_ns, port, body)

    def read(self, now_ns: int, port: PortKey, counters: Counters) -> Outgoing:
        """Handles the counters of a port.

        If the port's counters are not needed, they are ignored.
        """
        number = self.number(port)
        if number is None or not self.active:
            return []
        capacity = self._counted[number].capacity_bps // 8
        departed = max(0, counters.tx_bytes - ETHERNET * counters.tx_packets)
        return self._law(now_ns).on_counters(
            now_ns,
            number,
            at_ns=counters.age_ns,
            capacity=capacity,
            departed=departed,
            departed_packets=counters.tx_packets,
            period_ns=self.interval_ns,
        )

    def tick(self, now_ns: int) -> Outgoing:
        """Computes new rates at the end of a control period."""
        if not self.active:
            self._pacec = None
            return []
        return self._law(now_ns).on_timer(now_ns)

    def next_timer_ns(self) -> int | None:
        """Time of the next call of `tick`."""
        return self._pacec.next_timer() if self.active and self._pacec is not None else None

    def verdict(self, port: int) -> tuple[float, int] | None:
        """A link's utilisation in the last period, and the total rate of its flows, L3 bytes/s."""
        return None if self._pacec is None else self._pacec.verdict(port)

    def flows(self) -> int:
        """Number of flows that have rates."""
        return 0 if self._pacec is None else self._pacec.flows()

    def _law(self, now_ns: int) -> Pacec:
        """PACEC for all ports.

        When the set of ports changes, PACEC starts again without flows, and the agents announce all flows
        again.
        """
        if self._pacec is None or self._changed:
            self._changed = False
            ports = [(number, self._agents[number]) for number in sorted(self._agents)]
            if ports:
                # Ports without an agent get the parameters of the first port with an agent.
                counted = ports[0][1].of_counted()
                ports += [(number, counted) for number in self._counted]
            if self._pacec is None or ports != self._ports:
                self._pacec, self._ports = Pacec(now_ns, FULL_PACKET, ports), ports
        return self._pacec
