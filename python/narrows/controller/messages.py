"""Events for the domain, and effects that the domain requests.

Events and effects are plain values, which do not need an OpenFlow library.

Switches are named by their datapath id, ports by their OpenFlow number, hosts by their MAC address (lower
case).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PortKey = tuple[int, int]
"""A port of a switch: datapath id and port number."""
CongestionKind = Literal["queue", "burst"]
"""The kinds of congestion of the BRF paper."""


@dataclass(frozen=True, slots=True)
class Match:
    """The fields that a rule matches. None matches any value."""

    in_port: int | None = None
    eth_src: str | None = None
    eth_dst: str | None = None
    eth_dst_mask: str | None = None
    eth_type: int | None = None
    icmp6_type: int | None = None
    """Type of an ICMPv6 message (with `eth_type` of IPv6)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A flow entry. An entry without `outputs`, `to_controller` and `goto` drops packets."""

    table: int
    priority: int
    match: Match
    outputs: tuple[int, ...] = ()
    """Port numbers in ascending order. A packet never leaves through its ingress port (OpenFlow 1.3.5,
    4.5)."""
    to_controller: bool = False
    goto: int | None = None
    idle_s: int = 0
    """The switch removes the entry after this time without a packet and notifies the controller. 0: never."""

    @property
    def key(self) -> RuleKey:
        """The key of an entry in a switch."""
        return (self.table, self.priority, self.match)


RuleKey = tuple[int, int, Match]


@dataclass(frozen=True, slots=True)
class PortDesc:
    """A switch's port as the switch describes it."""

    number: int
    name: str
    mac: str
    up: bool
    speed_bps: int
    """Current speed that the port's driver reports, in bit/s (0: unknown). A veth always reports 10
    Gbit/s."""


@dataclass(frozen=True, slots=True)
class Counters:
    """A port's counters since it came up."""

    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_dropped: int
    tx_dropped: int
    age_ns: int = 0
    """How long the port had been up when the counters were read, by the switch's own clock."""


# Events


@dataclass(frozen=True, slots=True)
class SwitchUp:
    """A switch has connected.

    `rules` are the switch's existing entries that a Narrows controller has installed.
    """

    dpid: int
    ports: tuple[PortDesc, ...]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchDown:
    """The connection of a switch has ended."""

    dpid: int


@dataclass(frozen=True, slots=True)
class PortChanged:
    """A port is new, went up or went down."""

    dpid: int
    port: PortDesc


@dataclass(frozen=True, slots=True)
class PortGone:
    """A port was removed."""

    dpid: int
    port: int


@dataclass(frozen=True, slots=True)
class LldpSeen:
    """An authenticated LLDP frame of this controller arrived."""

    dpid: int
    port: int
    from_dpid: int
    from_port: int


@dataclass(frozen=True, slots=True)
class FrameSeen:
    """A frame with an unknown source arrived at this port."""

    dpid: int
    port: int
    mac: str
    ip: str | None = None
    """The sender's address from ARP, neighbour discovery or the IP header."""


@dataclass(frozen=True, slots=True)
class RuleGone:
    """A switch removed a flow entry because its idle time was over."""

    dpid: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class CountersRead:
    """The answer to `AskCounters`."""

    dpid: int
    ports: dict[int, Counters]


@dataclass(frozen=True, slots=True)
class BarrierDone:
    """The switch has processed everything that was sent to it before the barrier with this number."""

    dpid: int
    number: int


@dataclass(frozen=True, slots=True)
class AgentUp:
    """An agent has connected and was accepted."""

    agent: str
    address: str


@dataclass(frozen=True, slots=True)
class AgentDown:
    """An agent's connection has ended for the given reason."""

    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """A message body (JSON text) from an accepted agent."""

    agent: str
    body: str


Event = (
    SwitchUp
    | SwitchDown
    | PortChanged
    | PortGone
    | LldpSeen
    | FrameSeen
    | RuleGone
    | CountersRead
    | BarrierDone
    | AgentUp
    | AgentDown
    | AgentMessage
)

# Effects


@dataclass(frozen=True, slots=True)
class Install:
    """Add an entry, or replace the entry with the same key."""

    dpid: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove exactly this entry."""

    dpid: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Barrier:
    """Request an answer as soon as the switch has processed all earlier messages."""

    dpid: int
    number: int


@dataclass(frozen=True, slots=True)
class SendLldp:
    """Send an LLDP frame through a port."""

    dpid: int
    port: int


@dataclass(frozen=True, slots=True)
class AskCounters:
    """Request the counters of all ports."""

    dpid: int


@dataclass(frozen=True, slots=True)
class SendToAgent:
    """Send a body (JSON text) to an agent."""

    agent: str
    body: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the log and the page."""

    kind: str
    """The kind of the note, as a fixed word such as `link-up`."""
    text: str
    data: Mapping[str, str | int | PortKey | None] = field(default_factory=dict)
    """Data that identify what the line is about."""


Effect = Install | Remove | Barrier | SendLldp | AskCounters | SendToAgent | Note
