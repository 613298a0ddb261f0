"""Takes a sample of the values of all ports at one time, for the history and the alerts.

A sample is taken while the domain's lock is held, which delays control. Therefore only references to the
flows are copied. Sums are computed after the lock is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from narrows._native import FlowInfo
from narrows.controller.domain import Domain
from narrows.controller.messages import PortKey
from narrows.controller.topology import Kind


@dataclass(frozen=True)
class PortSample:
    """The values of a port. The port belongs to an agent, to a switch, or to both."""

    id: str
    """`AGENT/INTERFACE`, or `DATAPATH:NUMBER` for a port without an agent."""
    agent: str | None
    interface: str
    at: PortKey | None
    """Key of the port (None: it is not a port of a connected switch)."""
    capacity_bps: int | None
    tx_bps: float | None
    rx_bps: float | None
    queued_bytes: int | None
    flows: tuple[FlowInfo, ...]

    @cached_property
    def flows_bps(self) -> int:
        """Sum of the flows' rates, bit/s, L3."""
        return 8 * sum(flow.rate for flow in self.flows)

    @property
    def queue_s(self) -> float | None:
        """Time that the link needs to send the queue of the rated class."""
        if self.queued_bytes is None or not self.capacity_bps:
            return None
        return 8 * self.queued_bytes / self.capacity_bps


@dataclass(frozen=True, slots=True)
class Sample:
    """All ports, and the time since each connected agent's last message."""

    ports: tuple[PortSample, ...]
    silent_s: dict[str, float]


def id_of(agent: str, interface: str) -> str:
    """The identifier of an agent's port, which is unique because names of interfaces contain no slash."""
    return f"{agent}/{interface}"


def id_at(key: PortKey) -> str:
    """The identifier of a port of a switch that no agent controls."""
    return f"{key[0]:016x}:{key[1]}"


def keys_at(domain: Domain) -> dict[PortKey, str]:
    """The identifiers of the switches' ports that agents control."""
    names = {port.id: id_of(agent.name, port.info.interface) for agent, port in domain.agents.ports()}
    return {at: names[port.id] for at, port in domain.controlled().items()}


def take(domain: Domain, now_ns: int) -> Sample:
    """The sample of the present values."""
    controlled = domain.controlled()
    places = {port.id: key for key, port in controlled.items()}
    ports = []
    for agent, port in domain.agents.ports():
        at = places.get(port.id)
        load = None if at is None else domain.loads.by_port.get(at)
        ports.append(
            PortSample(
                id=id_of(agent.name, port.info.interface),
                agent=agent.name,
                interface=port.info.interface,
                at=at,
                capacity_bps=8 * port.info.capacity,
                tx_bps=None if load is None else load.tx_bps,
                rx_bps=None if load is None else load.rx_bps,
                queued_bytes=None if port.report_ns is None else port.queued_bytes,
                flows=port.flows,
            )
        )
    for dpid, numbers in domain.topology.switches.items():
        for number, own in numbers.items():
            key = (dpid, number)
            if key in controlled or own.kind is Kind.DOWN:
                continue
            load = domain.loads.by_port.get(key)
            ports.append(
                PortSample(
                    id=id_at(key),
                    agent=None,
                    interface=own.desc.name,
                    at=key,
                    capacity_bps=domain.capacity_bps(key),
                    tx_bps=None if load is None else load.tx_bps,
                    rx_bps=None if load is None else load.rx_bps,
                    queued_bytes=None,
                    flows=(),
                )
            )
    silent_s = {
        name: max(0, now_ns - domain.heard_ns.get(name, agent.since_ns)) / 1e9
        for name, agent in domain.agents.by_name.items()
    }
    return Sample(tuple(ports), silent_s)
