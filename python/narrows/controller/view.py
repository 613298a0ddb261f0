"""Typed models of the domain's state for the page and other programs. Names of fields contain units."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

from narrows.controller.domain import Domain
from narrows.controller.messages import CongestionKind, PortKey
from narrows.controller.sample import id_at, id_of, keys_at
from narrows.controller.topology import Kind

Severity = Literal["info", "warning", "error"]
"""Severity of an event."""
AlertSeverity = Literal["info", "warning", "critical"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class End(_Model):
    """A port of a switch."""

    switch: str = Field(description="Datapath id, 16 hexadecimal digits.")
    port: int = Field(description="OpenFlow port number.")


class Load(_Model):
    """A port's load in the interval between the last two readings."""

    tx_bps: float = Field(description="Rate sent, bit/s, L2.")
    rx_bps: float = Field(description="Rate received, bit/s, L2.")
    capacity_bps: int | None = Field(description="Capacity, bit/s; null if unknown.")
    utilisation: float | None = Field(description="Rate sent as a fraction of the capacity.")
    netcard_rate: float = Field(
        description="Result of the BRF paper's equation 5, from packets. For information."
    )
    dropped: int = Field(description="Packets dropped by the switch in the interval.")


class Port(_Model):
    """A port."""

    key: str = Field(description="Identifier of the port in `history`.")
    number: int
    name: str
    mac: str
    kind: Literal["down", "probing", "edge", "trunk"]
    load: Load | None
    congestion: CongestionKind | None = Field(description="Last result of the detector.")


class Switch(_Model):
    """A connected switch."""

    id: str = Field(description="Datapath id, 16 hexadecimal digits.")
    ports: list[Port]
    rules: int = Field(description="Number of the controller's entries in the switch.")
    held: bool = Field(description="Whether the switch still uses the entries of an earlier controller.")


class Host(_Model):
    """A host."""

    mac: str
    ips: list[str]
    at: End


class Link(_Model):
    """A link between switches, with a load for each direction."""

    a: End
    b: End
    delay_s: float = Field(description="Propagation delay as configured, seconds.")
    a_to_b: Load | None
    b_to_a: Load | None
    congestion: CongestionKind | None


class Topology(_Model):
    """The network."""

    switches: list[Switch]
    links: list[Link]
    hosts: list[Host]


class Flow(_Model):
    """A flow at a controlled port."""

    agent: str
    interface: str
    source: str
    destination: str
    source_port: int
    destination_port: int
    protocol: str
    class_: str = Field(alias="class")
    leaf: str
    allocation_bps: int | None = Field(description="Allocated rate, bit/s, L3; null if unlimited.")
    rate_bps: int = Field(description="Rate used, bit/s, L3.")
    rtt_s: float | None = Field(description="Round-trip time, seconds.")
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class CongestionState(_Model):
    """The state of a controlled port."""

    key: str = Field(description="Identifier of the port in `history` and `flows`.")
    agent: str
    port: int = Field(description="The agent's number of the port.")
    id: int = Field(description="Number in the domain.")
    interface: str
    at: End | None = Field(description="Switch port, if the port belongs to a connected switch.")
    kind: CongestionKind | None
    seconds: float = Field(description="Duration of this state, seconds.")
    capacity_bps: int
    queued_bytes: int
    netcard_rate: float | None = Field(description="Result of the BRF paper's equation 5.")
    queue_utilisation: float | None = Field(description="Result of the BRF paper's equation 6.")
    arrivals: float | None = Field(description="Arrivals of the rated class as a fraction of its share.")
    reports: int
    rate_controller: str = Field(description="Name of the rate controller.")
    utilisation: float | None = Field(
        description="PACEC: utilisation of the link in the last control period."
    )
    available_bps: int | None = Field(description="PACEC: total rate for the flows of the link, bit/s, L3.")

    @computed_field(json_schema_extra={"deprecated": True})
    def controller(self) -> str:
        """The value of `rate_controller`, under the name that this field had in version 0.2."""
        return self.rate_controller


class Agent(_Model):
    """A connected, authenticated agent."""

    name: str
    address: str
    seconds: float = Field(description="Duration of the connection, seconds.")
    ports: list[str] = Field(description="Interfaces that the agent controls.")
    refused: int = Field(description="Number of invalid bodies.")


class Event(_Model):
    """An event."""

    id: int = Field(description="Number of the event; consecutive.")
    time: float = Field(description="Unix time, seconds.")
    kind: str
    text: str
    severity: Severity = "info"
    count: int = Field(1, description="Number of changes that are merged into this event.")
    seconds: float = Field(0.0, description="Time from the first to the last of these changes, seconds.")


class Series(_Model):
    """The last hour of a port, oldest first. If an interval has no measurement, its value is null."""

    port: str = Field(description="Identifier of the port.")
    step_s: float = Field(description="Length of an interval, seconds.")
    first: int = Field(description="Number of the first interval; intervals are consecutive.")
    last: int = Field(description="Number of the last complete interval; -1 if there is none.")
    end_s: float = Field(description="Unix time of the end of the last interval, seconds.")
    tx_bps: list[float | None] = Field(description="Rate sent, bit/s, L2, mean.")
    rx_bps: list[float | None] = Field(description="Rate received, bit/s, L2, mean.")
    flows_bps: list[float | None] = Field(description="Sum of the rates of the flows, bit/s, L3, mean.")
    queue_s: list[float | None] = Field(
        description="Queueing delay of the rated class at the rate of the link, seconds, maximum."
    )
    flows: list[float | None] = Field(description="Number of flows, mean.")


class Alert(_Model):
    """An alert that has begun and not ended."""

    name: str
    severity: AlertSeverity
    agent: str
    interface: str | None = Field(description="Interface of the agent; null if the alert is about the agent.")
    since: float = Field(description="Unix time, seconds.")
    text: str


class Receiver(_Model):
    """An Alertmanager."""

    url: str
    error: str | None = Field(description="Why the last request failed; null if it succeeded.")
    delivered: float | None = Field(description="Unix time of the last accepted request, seconds.")


class AlertState(_Model):
    """All alerts, and their delivery."""

    configured: bool = Field(description="Whether the configuration has thresholds.")
    left_out: int = Field(description="Number of alerts that are not active, because there are too many.")
    active: list[Alert]
    receivers: list[Receiver]


class State(_Model):
    """All data of the page."""

    name: str
    uptime_s: float
    authenticated: bool = Field(description="Whether agents and controller have keys.")
    active: bool = Field(True, description="Whether this controller is active; otherwise it is a standby.")
    topology: Topology
    flow_count: int
    flows: list[Flow]
    congestion: list[CongestionState]
    agents: list[Agent]
    alerts: AlertState = AlertState(configured=False, left_out=0, active=[], receivers=[])


def name_of(dpid: int) -> str:
    """A datapath id as text."""
    return f"{dpid:016x}"


def _end(key: PortKey) -> End:
    return End(switch=name_of(key[0]), port=key[1])


def _load(domain: Domain, key: PortKey) -> Load | None:
    load = domain.loads.by_port.get(key)
    if load is None:
        return None
    return Load(
        tx_bps=load.tx_bps,
        rx_bps=load.rx_bps,
        capacity_bps=domain.capacity_bps(key),
        utilisation=load.utilisation,
        netcard_rate=load.netcard_rate,
        dropped=load.dropped,
    )


def _kinds(domain: Domain) -> dict[PortKey, CongestionKind]:
    """For each congested port of a switch, the kind of its congestion."""
    return {place: port.kind for place, port in domain.controlled().items() if port.kind is not None}


def topology(domain: Domain) -> Topology:
    """Switches, links and hosts."""
    return Topology(switches=switches(domain), links=links(domain), hosts=hosts(domain))


def switches(domain: Domain) -> list[Switch]:
    """All connected switches."""
    kinds = _kinds(domain)
    keys = keys_at(domain)
    return [
        Switch(
            id=name_of(dpid),
            held=domain.is_held(dpid),
            rules=len(domain.installed.get(dpid, ())),
            ports=[
                Port(
                    key=keys.get((dpid, number)) or id_at((dpid, number)),
                    number=number,
                    name=port.desc.name,
                    mac=port.desc.mac,
                    kind=port.kind.value,
                    load=_load(domain, (dpid, number)) if port.kind is not Kind.DOWN else None,
                    congestion=kinds.get((dpid, number)),
                )
                for number, port in sorted(ports.items())
            ],
        )
        for dpid, ports in sorted(domain.topology.switches.items())
    ]


def links(domain: Domain) -> list[Link]:
    """Links between switches."""
    kinds = _kinds(domain)
    return [
        Link(
            a=_end(link.a),
            b=_end(link.b),
            delay_s=domain.delay_ns(link) / 1e9,
            a_to_b=_load(domain, link.a),
            b_to_a=_load(domain, link.b),
            congestion=kinds.get(link.a) or kinds.get(link.b),
        )
        for link in domain.topology.links()
    ]


def hosts(domain: Domain) -> list[Host]:
    """Known hosts."""
    return [
        Host(mac=mac, ips=list(host.ips), at=_end(host.at))
        for mac, host in sorted(domain.hosts.by_mac.items())
    ]


def congestion(domain: Domain, now_ns: int) -> list[CongestionState]:
    """Controlled ports."""
    places = {port.id: place for place, port in domain.controlled().items()}
    states = []
    for agent, port in domain.agents.ports():
        eq5, eq6, arrivals = domain.congestion.verdict(port.id) or (None, None, None)
        used, available = domain.path_rates.verdict(port.id) or (None, None)
        place = places.get(port.id)
        states.append(
            CongestionState(
                key=id_of(agent.name, port.info.interface),
                agent=agent.name,
                port=port.info.port,
                id=port.id,
                interface=port.info.interface,
                at=None if place is None else _end(place),
                kind=port.kind,
                seconds=max(0, now_ns - max(port.since_ns, agent.since_ns)) / 1e9,
                capacity_bps=8 * port.info.capacity,
                queued_bytes=port.queued_bytes,
                netcard_rate=eq5,
                queue_utilisation=eq6,
                arrivals=arrivals,
                reports=port.reports,
                rate_controller=port.info.rate_controller,
                utilisation=used,
                available_bps=None if available is None else 8 * available,
            )
        )
    return states


def agents(domain: Domain, now_ns: int) -> list[Agent]:
    """Connected agents."""
    return [
        Agent(
            name=agent.name,
            address=agent.address,
            seconds=(now_ns - agent.since_ns) / 1e9,
            ports=[port.info.interface for port in agent.ports.values()],
            refused=agent.refused,
        )
        for _, agent in sorted(domain.agents.by_name.items())
    ]
