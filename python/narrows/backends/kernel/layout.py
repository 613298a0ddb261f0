"""Places a plan's nodes, links and flows in Linux. `lay_out` is a pure function from a plan to a layout.

    node            a network namespace
    link a -> b     A qdisc at a's device has the rate and the queue. A relay adds delay, jitter and loss. The
                    relay is a program, or the kernel's netem if the scenario requests netem and netem
                    supports the link.
    pair of links   Without a relay, the devices of a and b are the two ends of one veth pair. If a direction
                    has a relay, there are two veth pairs. The relay moves packets between the two pairs in
                    the namespace `wire`.

A sender's own device never delays packets. TCP small queues (tcp_write_xmit, net/ipv4/tcp_output.c) stop a
socket while its packets wait in its own host. A delay in the sender's own host would therefore throttle the
socket. Beyond the host's veth, in a router or in a bridge, a packet is no longer charged to its socket. For
example, `ss -tm` shows t0 (no memory for sent packets) while the queue of the bottleneck is full.

Each pair of endpoints has its own pair of addresses, and each node on its paths has routes to both addresses.
Packets therefore take the simulator's paths, whatever the routing metrics are, and ACKs can have their own
`return_path`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv4Address

from narrows import _native
from narrows.backends.kernel.netem import RELAYED, Netem, netem
from narrows.backends.kernel.queues import Qdisc, check_shaped, qdisc, relay_shapes, with_fq
from narrows.congestion import chosen, registered
from narrows.errors import ScenarioError
from narrows.packets import FULL_PACKET, HEADERS, INITIAL_WINDOW
from narrows.plan import ControllerPlan, LinkPlan, Plan

WIRE = "wire"
"""The namespace in which relays move packets between nodes."""
CONTROL = "sdn"
"""The namespace of the SDN controller, if the plan has an SDN controller (see `control`)."""
PACEC = "pacec"
"""The rate controller whose rates the SDN controller computes."""

_ENDPOINTS = IPv4Address("10.0.0.0")
_DEVICES = IPv4Address("10.128.0.0")


@dataclass(frozen=True)
class Port:
    """The device that sends the packets of a directed link.

    The device also receives the packets of the reverse link.
    """

    link: int
    node: int
    device: str
    mac: str
    address: str
    """The address that the node at the link's other end uses as its next hop to this device. No packet
    contains it."""
    queue: Qdisc | None
    """Rate and queue of the link (None: a relay or an agent shapes the link)."""


@dataclass(frozen=True)
class Veth:
    """A veth pair: two devices, each in a namespace."""

    ends: tuple[tuple[str, str], tuple[str, str]]
    """The two ends, each as (namespace, device)."""


@dataclass(frozen=True)
class Relay:
    """One direction of a link that passes through the namespace `wire`."""

    link: int
    ingress: str
    """Device in `wire` that receives the link's packets."""
    egress: str
    """Device in `wire` that sends the packets on."""
    shapes: bool
    """Whether the relay also applies the link's rate and queue. Otherwise, a qdisc before the relay does
    so."""
    netem: Netem | None = None
    """Settings of the kernel's netem (None: the relay is a program)."""


@dataclass(frozen=True)
class Endpoints:
    """The addresses of all flows that have the same ends, paths and class."""

    source: int
    """Sending node."""
    to: int
    """Receiving node."""
    source_address: str
    to_address: str
    forth: tuple[int, ...]
    """Links of the data's path."""
    back: tuple[int, ...]
    """Links of the ACKs' path."""
    klass: int
    """Class of the flows in HTB and priority queues."""
    ecn: bool
    initial_window: int
    """Initial congestion window, packets."""
    congestion: str | None = None
    """The kernel's name of the congestion controller that the sender's route sets for programs (None: the
    socket decides)."""


@dataclass(frozen=True)
class Hop:
    """A route: `node` sends packets for `to` through `device` to the next hop `via`."""

    node: int
    to: str
    device: str
    via: str
    source: str | None
    """Source address of the node's own packets, set only at the first node of the path."""
    ecn: bool = False
    initial_window: int | None = None
    """Initial congestion window in packets, set only at the first node of the path (None: the kernel's
    default)."""
    congestion: str | None = None
    """See `Endpoints.congestion`. Only the route at the first node of the data's path has this value."""


@dataclass(frozen=True)
class Crossing:
    """A static entry of a bridge: frames to `mac` leave through `device`."""

    node: int
    mac: str
    device: str


@dataclass(frozen=True)
class Match:
    """Packets to `address` enter class `klass` of the queue at the port of `link`."""

    link: int
    address: str
    klass: int


@dataclass
class Layout:
    """All kernel objects of a plan."""

    nodes: list[str]
    kinds: list[str]
    """Kind of each node: ``host`` (flows begin or end at the node), ``route``, ``bridge`` or ``ovs``."""
    mtu: int
    ports: list[Port]
    veths: list[Veth] = field(default_factory=list)
    relays: list[Relay] = field(default_factory=list)
    endpoints: list[Endpoints] = field(default_factory=list)
    of_flow: list[int] = field(default_factory=list)
    """For each flow of the plan, the index of its endpoints."""
    hops: list[Hop] = field(default_factory=list)
    crossings: list[Crossing] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    datapath: str = "netdev"
    """Datapath of Open vSwitch: ``system`` (the kernel's module) or ``netdev`` (user space)."""
    receive_buffer: int = 0
    """Bytes of a TCP socket's receive buffer."""
    control: list[int] = field(default_factory=list)
    """Nodes that the SDN controller controls: nodes with rate controllers, and Open vSwitch bridges."""

    @property
    def send_buffer(self) -> int:
        """Bytes of a TCP socket's send buffer.

        The send buffer is at least as large as the receive buffer, so that it never limits a flow first.
        """
        return max(self.receive_buffer, _native.DEFAULT_RECEIVE_BUFFER)

    @cached_property
    def relayed(self) -> dict[int, Relay]:
        """The relays by the number of their link."""
        return {relay.link: relay for relay in self.relays}

    @property
    def disciplines(self) -> set[str]:
        """Queueing disciplines that this plan needs but other plans may not need."""
        leaves = [port.queue.leaf for port in self.ports if port.queue is not None]
        marking = {"codel"} if any(leaf is not None and leaf.mark is not None for leaf in leaves) else set()
        fq = {"fq"} if any(leaf is not None and leaf.fq for leaf in leaves) else set()
        return marking | fq | ({"netem"} if any(relay.netem for relay in self.relays) else set())

    def namespace(self, node: int) -> str:
        """A node's namespace, without the run's prefix."""
        return f"n{node}"

    def namespaces(self) -> list[str]:
        """All namespaces, without the run's prefix."""
        names = [self.namespace(node) for node in range(len(self.nodes))]
        names += [WIRE] if self.relays else []
        return [*names, CONTROL] if self.control else names


def has_agent(controller: ControllerPlan) -> bool:
    """Whether a controlled port has an agent.

    A port with PACEC has no agent if no flow begins at the port (`edge = false`). The SDN controller reads
    the counters of such a port from the switch.
    """
    return not (controller["kind"] == PACEC and controller["params"].get("edge") is False)


def lay_out(plan: Plan, forwarding: str = "route", delay: str = "relay") -> Layout:
    """Place the nodes, links and flows of a plan.

    Args:
        plan: the plan of a run.
        forwarding: ``route``, ``bridge`` or ``ovs``, for nodes that only forward.
        delay: ``relay`` or ``netem``, for the delay and loss of links that netem supports.

    Raises:
        ScenarioError: if the plan has a feature that Linux lacks.
    """
    return _Placement(plan, forwarding, delay).layout


class _Placement:
    def __init__(self, plan: Plan, forwarding: str, delay: str) -> None:
        if plan.get("ecmp"):
            raise ScenarioError("found true, expected false: on real stacks, each pair has one path", "ecmp")
        self.plan = plan
        self.with_netem = delay == "netem"
        self.links = plan["links"]
        self.back = reverse_links(self.links)
        self.paths = flow_paths(plan)
        self.controlled = {c["link"] for c in plan["rate_controllers"] if has_agent(c)}
        kinds = self._kinds(forwarding)
        self.layout = Layout(
            plan["nodes"], kinds, _mtu(plan), [self._port(i) for i in range(len(self.links))]
        )
        if (plan.get("kernel") or {}).get("host_queue") == "fq":
            self._fq_at_hosts()
        self.layout.receive_buffer = plan["receive_buffer"] or _native.DEFAULT_RECEIVE_BUFFER
        if plan.get("sdn"):
            nodes = {self.links[link]["from"] for link in self.controlled}
            self.layout.control = sorted(nodes | {i for i, kind in enumerate(kinds) if kind == "ovs"})
        for i, back in enumerate(self.back):
            if i < back:
                self._join(i, back)
        self._endpoints()
        for endpoints in self.layout.endpoints:
            self._route(endpoints.forth, endpoints.to_address, endpoints.source_address, endpoints)
            self._route(endpoints.back, endpoints.source_address, endpoints.to_address, endpoints)
        self.layout.hops = list(dict.fromkeys(self.layout.hops))
        self.layout.crossings = self._agreeing(dict.fromkeys(self.layout.crossings))

    def _fq_at_hosts(self) -> None:
        found = False
        for index, port in enumerate(self.layout.ports):
            if self.layout.kinds[port.node] == "host" and port.queue is not None:
                queue = with_fq(port.queue)
                if queue is not None:
                    self.layout.ports[index] = replace(port, queue=queue)
                    found = True
        if not found:
            raise ScenarioError(
                "found 'fq', expected 'fifo' or a link from a host with the queue 'infinite'",
                "kernel.host_queue",
            )

    def _kinds(self, forwarding: str) -> list[str]:
        kinds = [forwarding] * len(self.plan["nodes"])
        for flow in self.plan["flows"]:
            kinds[flow["from"]] = kinds[flow["to"]] = "host"
        return kinds

    def _port(self, index: int) -> Port:
        link = self.links[index]
        key = f"links.{link['name']}.queue"
        own = index in self.controlled or relay_shapes(link)
        if own and index not in self.controlled:
            check_shaped(link, key)
        return Port(
            link=index,
            node=link["from"],
            device=f"l{index}",
            mac="02:6e:" + ":".join(f"{byte:02x}" for byte in index.to_bytes(4, "big")),
            address=str(_DEVICES + index + 1),
            queue=None if own else qdisc(link, key),
        )

    def _join(self, forth: int, back: int) -> None:
        ends = [
            (self.layout.namespace(self.links[index]["from"]), self.layout.ports[index].device)
            for index in (forth, back)
        ]
        if not (self._needs_relay(forth) or self._needs_relay(back)):
            self.layout.veths.append(Veth((ends[0], ends[1])))
            return
        for index, end in zip((forth, back), ends, strict=True):
            self.layout.veths.append(Veth((end, (WIRE, f"w{index}"))))
        for index, other in ((forth, back), (back, forth)):
            shapes = relay_shapes(self.links[index]) and index not in self.controlled
            instead = netem(self.links[index]) if self.with_netem else None
            self.layout.relays.append(Relay(index, f"w{index}", f"w{other}", shapes, instead))

    def _needs_relay(self, index: int) -> bool:
        link = self.links[index]
        behind = any(span for _, span in link["delay"]) or link["loss"] or any(map(link.get, RELAYED))
        return bool(behind) or relay_shapes(link)

    def _endpoints(self) -> None:
        known: dict[tuple[object, ...], int] = {}
        for flow, (forth, back) in zip(self.plan["flows"], self.paths, strict=True):
            transport = flow["transport"]
            ecn = bool(transport.get("ecn"))
            initial = INITIAL_WINDOW
            congestion = None
            if transport["kind"] == "program":
                congestion = registered(chosen(flow)) or None
            if transport["kind"] == "tcp":
                initial = transport.get("initial_window", INITIAL_WINDOW)
            key = (
                flow["from"],
                flow["to"],
                tuple(forth),
                tuple(back),
                flow["class"],
                ecn,
                initial,
                congestion,
            )
            if key not in known:
                number = known[key] = len(known)
                self.layout.endpoints.append(
                    Endpoints(
                        source=flow["from"],
                        to=flow["to"],
                        source_address=str(_ENDPOINTS + 2 * number + 1),
                        to_address=str(_ENDPOINTS + 2 * number + 2),
                        forth=tuple(forth),
                        back=tuple(back),
                        klass=flow["class"],
                        ecn=ecn,
                        initial_window=initial,
                        congestion=congestion,
                    )
                )
            self.layout.of_flow.append(known[key])

    def _route(self, path: tuple[int, ...], to: str, own: str, endpoints: Endpoints) -> None:
        """Add a path: a route at each hop, an entry in each bridge between hops, and matches of classes."""
        bridged = ("bridge", "ovs")
        first = 0
        for last, link in enumerate(path):
            port = self.layout.ports[link]
            if port.queue is not None and port.queue.classes:
                self.layout.matches.append(Match(link, to, endpoints.klass))
            if self.layout.kinds[self.links[link]["to"]] in bridged:
                continue
            next_hop = self.layout.ports[self.back[link]]
            for crossed in path[first + 1 : last + 1]:
                at = self.layout.ports[crossed]
                self.layout.crossings.append(Crossing(at.node, next_hop.mac, at.device))
            leaving = self.layout.ports[path[first]]
            hop = Hop(leaving.node, to, leaving.device, next_hop.address, None)
            if first == 0:
                other = endpoints.initial_window != INITIAL_WINDOW
                initial = endpoints.initial_window if other else None
                sends = endpoints.congestion if own == endpoints.source_address else None
                hop = replace(hop, source=own, ecn=endpoints.ecn, initial_window=initial, congestion=sends)
            self.layout.hops.append(hop)
            first = last + 1

    def _agreeing(self, crossings: dict[Crossing, None]) -> list[Crossing]:
        """Check that each bridge needs only one device per MAC address.

        A bridge does not support several devices for one MAC address.
        """
        by_target: dict[tuple[int, str], str] = {}
        for crossing in crossings:
            device = by_target.setdefault((crossing.node, crossing.mac), crossing.device)
            if device != crossing.device:
                raise ScenarioError(
                    f"found different paths to one neighbour at {self.plan['nodes'][crossing.node]!r}, "
                    "expected 'route' for this network",
                    "kernel.forwarding",
                )
        return list(crossings)


def reverse_links(links: list[LinkPlan]) -> list[int]:
    """The reverse of each directed link: the first opposite link that is not yet part of a pair."""
    waiting: dict[tuple[int, int], list[int]] = {}
    back = [-1] * len(links)
    for index, link in enumerate(links):
        ends = (link["from"], link["to"])
        if waiting.get(ends[::-1]):
            other = waiting[ends[::-1]].pop(0)
            back[index], back[other] = other, index
        else:
            waiting.setdefault(ends, []).append(index)
    alone = [index for index, other in enumerate(back) if other < 0]
    if alone:
        raise ScenarioError(
            f"found {links[alone[0]]['name']!r} without a reverse link, expected links in pairs", "links"
        )
    return back


def flow_paths(plan: Plan) -> list[tuple[list[int], list[int]]]:
    """For each flow, the links on the paths of its data and of its ACKs."""
    paths = []
    for flow, path in zip(plan["flows"], _native.flow_paths(json.dumps(plan)), strict=True):
        if path is None:
            raise ScenarioError(f"found no path for {flow['name']!r}, expected one", "flows")
        paths.append(path)
    return paths


def _mtu(plan: Plan) -> int:
    return max([FULL_PACKET, *_packets(plan)])


def _packets(plan: Plan) -> Iterator[int]:
    for flow in plan["flows"]:
        transport = flow["transport"]
        if transport["kind"] == "udp":
            yield transport["packet"]
        elif transport["kind"] == "tcp":
            yield transport["mss"] + HEADERS
