"""What happens to the domain (events) and what it wants done (effects): plain values, no OpenFlow library.

Switches are named by their datapath id, ports by their OpenFlow number, hosts by their MAC address (lower
case).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PortKey = tuple[int, int]
"""Datapath id and port number."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a rule looks at; None: anything."""

    in_port: int | None = None
    eth_src: str | None = None
    eth_dst: str | None = None
    eth_dst_mask: str | None = None
    eth_type: int | None = None
    icmp6_type: int | None = None
    """Of an ICMPv6 message (with `eth_type` of IPv6)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A flow entry. Without outputs, controller and goto the packet is dropped."""

    table: int
    priority: int
    match: Match
    outputs: tuple[int, ...] = ()
    """Port numbers, ascending; a packet never leaves by the port that it came in by (OpenFlow 1.3.5, 4.5)."""
    to_controller: bool = False
    goto: int | None = None
    idle_s: int = 0
    """Removed, and the controller told, after this many seconds without a packet; 0: never."""

    @property
    def key(self) -> RuleKey:
        """What identifies an entry in a switch."""
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
    """Current speed in bit/s as the driver says it, 0 if it does not. A veth says 10 Gbit/s whatever it
    carries."""


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
    """How long the port has been there, by the switch's own clock: when it was read."""


# Events


@dataclass(frozen=True, slots=True)
class SwitchUp:
    """A switch has connected; `rules` are our own entries that it holds from before."""

    dpid: int
    ports: tuple[PortDesc, ...]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchDown:
    """A switch's connection has ended."""

    dpid: int


@dataclass(frozen=True, slots=True)
class PortChanged:
    """A port is new, went up or went down."""

    dpid: int
    port: PortDesc


@dataclass(frozen=True, slots=True)
class PortGone:
    """A port was taken away."""

    dpid: int
    port: int


@dataclass(frozen=True, slots=True)
class LldpSeen:
    """Our own, authentic LLDP frame came in."""

    dpid: int
    port: int
    from_dpid: int
    from_port: int


@dataclass(frozen=True, slots=True)
class FrameSeen:
    """A frame whose source was not known at this port."""

    dpid: int
    port: int
    mac: str
    ip: str | None = None
    """The sender's address as ARP, neighbour discovery or the IP header has it."""


@dataclass(frozen=True, slots=True)
class RuleGone:
    """A switch removed an entry by itself: its idle time is over."""

    dpid: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class CountersRead:
    """The answer to `AskCounters`."""

    dpid: int
    ports: dict[int, Counters]


@dataclass(frozen=True, slots=True)
class BarrierDone:
    """All that was sent to the switch before barrier `number` is in force."""

    dpid: int
    number: int


@dataclass(frozen=True, slots=True)
class AgentUp:
    """An agent has proved that it knows the secret."""

    agent: str
    address: str


@dataclass(frozen=True, slots=True)
class AgentDown:
    """An agent's connection has ended; why."""

    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class AgentSays:
    """An authentic body (JSON text)."""

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
    | AgentSays
)

# Effects


@dataclass(frozen=True, slots=True)
class Install:
    """Add the entry, or replace the one with the same key."""

    dpid: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove exactly this entry."""

    dpid: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Barrier:
    """Answer when all before is in force."""

    dpid: int
    number: int


@dataclass(frozen=True, slots=True)
class SendLldp:
    """Send our LLDP frame out of a port."""

    dpid: int
    port: int


@dataclass(frozen=True, slots=True)
class AskCounters:
    """Read all ports' counters."""

    dpid: int


@dataclass(frozen=True, slots=True)
class Say:
    """Send a body to an agent."""

    agent: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that people want to know: for the log and the page."""

    kind: str
    """A fixed word, e.g. `link-up`."""
    text: str
    data: dict[str, Any] = field(default_factory=dict)


Effect = Install | Remove | Barrier | SendLldp | AskCounters | Say | Note
