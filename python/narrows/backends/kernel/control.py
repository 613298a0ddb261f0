"""The SDN controller of a run: its network, its configuration, and the facts that it must discover first.

    switch's namespace                   namespace `sdn`
    sdn0 192.168.0.(2+node) ------------ c<node>      controller at 192.168.0.1, on lo

Each node that has an agent or is an Open vSwitch bridge has one veth pair to the controller. No route joins
the control network and the measured network. The only packets that the controller sends on measured links are
LLDP frames: one frame of 60 bytes per port and second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from narrows.backends.kernel import namespaces
from narrows.backends.kernel.layout import CONTROL, PACEC, Layout, Port, has_agent, reverse_links
from narrows.errors import ScenarioError
from narrows.plan import Plan
from narrows.units import NANOS_PER_SEC

NAME = "controller"
"""Name of the controller program, and of the files with its keys, its configuration and its log."""
TRUSTED = "agents"
"""Name of the file with the agents' certificates."""
DEVICE = "sdn0"
"""The device in a switch's namespace that leads to the controller."""
OPENFLOW, AGENTS, HTTP = 6653, 6690, 6680
"""TCP ports of the controller in its own namespace. The controller listens for HTTP on loopback only."""
CONTROLLER = "192.168.0.1"
_SWITCHES = IPv4Address("192.168.0.2")

_MOST_SECONDS = 86_400
_MARGIN_SECONDS = 600
"""The controller removes a silent link or host after the run's duration plus this time, but after a day at
the latest."""
_POLL, _LEAST_POLL = 100_000_000, 1_000_000


def address(node: int) -> str:
    """A switch's address in the control network."""
    return str(_SWITCHES + node)


def port_number(link: int) -> int:
    """The OpenFlow port number of a link: the link's number plus one. OpenFlow does not allow port 0."""
    return link + 1


def datapath(node: int) -> int:
    """OpenFlow's datapath number of a switch."""
    return node + 1


def keys(prefix: str, name: str, trusted: str) -> dict[str, str]:
    """The TLS configuration of one end: paths of its key, its certificate and its trusted certificates."""
    folder = namespaces.FILES / prefix
    ends = {"key": f"{name}.key", "certificate": f"{name}.crt", "trusted": f"{trusted}.crt"}
    return {key: str(folder / file) for key, file in ends.items()}


def uplink(node: int, prefix: str) -> dict[str, Any]:
    """The table [controller] of the agent of a node."""
    return {
        "address": f"{CONTROLLER}:{AGENTS}",
        "name": f"n{node}",
        **keys(prefix, f"n{node}", NAME),
    }


def commands(layout: Layout, prefix: str) -> tuple[list[str], dict[str, list[str]]]:
    """Lines for ``ip -batch``.

    The lines of the list create the veth pairs. The dictionary has the lines that are executed in each
    namespace.
    """
    links, inside = [], {prefix + CONTROL: [f"addr add {CONTROLLER}/32 dev lo"]}
    for node in layout.control:
        switch, device = prefix + layout.namespace(node), f"c{node}"
        links.append(f"link add {device} netns {prefix}{CONTROL} type veth peer name {DEVICE} netns {switch}")
        inside[prefix + CONTROL] += [
            f"link set dev {device} up",
            f"route add {address(node)}/32 dev {device}",
        ]
        inside[switch] = [
            f"addr add {address(node)}/32 dev {DEVICE}",
            f"link set dev {DEVICE} up",
            f"route add {CONTROLLER}/32 dev {DEVICE} src {address(node)}",
        ]
    return links, inside


def config(plan: Plan, layout: Layout, prefix: str) -> dict[str, Any]:
    """The configuration of the controller."""
    # The simulator's routes never change. The controller must therefore not reroute flows when a link is
    # silent.
    whole = min(_MOST_SECONDS, plan["duration"] // NANOS_PER_SEC + _MARGIN_SECONDS)
    agents = known(plan, layout).agents
    return {
        "openflow": {"host": CONTROLLER, "port": OPENFLOW},
        # Without agents there are no keys, so the controller listens for agents on loopback only.
        "agents": {"host": CONTROLLER, "port": AGENTS, **keys(prefix, NAME, TRUSTED)} if agents else {},
        "http": {"port": HTTP},
        "forwarding": {"link_expire": f"{whole}s", "host_idle": f"{whole}s"},
        "detection": {"poll": f"{_poll(plan)}ns"},
        "ports": list(_ports(plan, layout)),
        "paths": list(_paths(plan, layout)),
    }


def _poll(plan: Plan) -> int:
    """The controller's polling interval, as in the simulator (crates/narrows-sim/src/world/domain.rs)."""
    asked = plan["sdn"]["poll"] if plan["sdn"] else None
    own = plan["rate_controllers"][0]["params"].get("poll")
    if asked is None:
        asked = own if isinstance(own, int) else _POLL
    return max(_LEAST_POLL, asked)


def _paths(plan: Plan, layout: Layout) -> Iterator[dict[str, Any]]:
    """The paths of flows through PACEC's ports, if the controller does not control the forwarding."""
    controlled = {c["link"] for c in plan["rate_controllers"] if c["kind"] == PACEC}
    if not controlled or "ovs" in layout.kinds:
        return
    for ends in layout.endpoints:
        passed = [layout.ports[link] for link in ends.forth if link in controlled]
        if passed:
            names = [f"{layout.namespace(port.node)}/{port.device}" for port in passed]
            yield {"from": ends.source_address, "to": ends.to_address, "ports": names}


def _ports(plan: Plan, layout: Layout) -> Iterator[dict[str, Any]]:
    counted = {c["link"] for c in plan["rate_controllers"] if c["kind"] == PACEC and not has_agent(c)}
    for port in layout.ports:
        if layout.kinds[port.node] == "ovs":
            link = plan["links"][port.link]
            served = link["rate"]
            rate = {"rate": f"{served['steps'][0][1] * 8}bit"} if served["kind"] == "steps" else {}
            name = f"{datapath(port.node):#x}:{port_number(port.link)}"
            yield {
                "port": name,
                **rate,
                "delay": f"{link['delay'][0][1]}ns",
                # As in the simulator, PACEC manages only the links that the scenario names.
                "counted": port.link in counted,
            }


End = tuple[int, int]
"""One end of a link: datapath id and port number."""


@dataclass(frozen=True)
class Known:
    """The facts about the network that a controller must have discovered before a run begins."""

    agents: frozenset[str]
    """Names of connected agents."""
    links: frozenset[tuple[End, End]]
    """Links between switches. In each pair, the lower end comes first."""
    hosts: frozenset[str]
    """MAC addresses of the hosts."""

    def lacks(self, state: dict[str, Any]) -> str:
        """The facts that a state lacks (empty: none).

        The state is `narrows.controller.view.State` as JSON.
        """
        agents = {agent["name"] for agent in state["agents"]}
        network = state["topology"]
        links = {(_end(link["a"]), _end(link["b"])) for link in network["links"]}
        hosts = {host["mac"] for host in network["hosts"]}
        missing = [
            f"agent {', '.join(sorted(self.agents - agents))}" if self.agents - agents else "",
            f"{len(self.links - links)} of {len(self.links)} links" if self.links - links else "",
            f"{len(self.hosts - hosts)} of {len(self.hosts)} hosts" if self.hosts - hosts else "",
        ]
        return " and ".join(filter(None, missing))


def known(plan: Plan, layout: Layout) -> Known:
    """The facts that the controller must have discovered, for a plan and its layout."""
    agents = frozenset(
        f"n{plan['links'][c['link']]['from']}" for c in plan["rate_controllers"] if has_agent(c)
    )
    links = set()
    for port, other in _pairs(plan, layout):
        if {layout.kinds[port.node], layout.kinds[other.node]} == {"ovs"}:
            ends = sorted((datapath(end.node), port_number(end.link)) for end in (port, other))
            links.add((ends[0], ends[1]))
    return Known(agents, frozenset(links), frozenset(port.mac for port in edges(plan, layout)))


def check_kinds(plan: Plan, forwarding: str) -> None:
    """Check that the controller supports the plan's rate controllers.

    Raises:
        ScenarioError: for ports without an agent and without Open vSwitch, whose counters the controller
            cannot read.
    """
    for number, controller in enumerate(plan["rate_controllers"]):
        if not has_agent(controller) and forwarding != "ovs":
            raise ScenarioError(
                f"found false with {forwarding!r}, expected true or kernel.forwarding = 'ovs': only Open "
                "vSwitch counts a port without an agent",
                f"rate_controllers.{number}.params.edge",
            )


def addresses(layout: Layout, port: Port) -> list[str]:
    """The addresses that a host uses on this port's link.

    These are the port's own address, and the host's addresses of the flows on the link.
    """
    ends = layout.endpoints
    of_flows = [end.source_address for end in ends if end.forth[0] == port.link]
    of_flows += [end.to_address for end in ends if end.back[0] == port.link]
    return list(dict.fromkeys([port.address, *of_flows]))


def edges(plan: Plan, layout: Layout) -> list[Port]:
    """The hosts' ports that are connected to an Open vSwitch bridge."""
    return [
        port
        for port, other in _pairs(plan, layout)
        if layout.kinds[port.node] != "ovs" and layout.kinds[other.node] == "ovs"
    ]


def _pairs(plan: Plan, layout: Layout) -> Iterator[tuple[Port, Port]]:
    """Each port, paired with the port that sends in the opposite direction of the same link."""
    for port, back in zip(layout.ports, reverse_links(plan["links"]), strict=True):
        yield port, layout.ports[back]


def _end(said: dict[str, Any]) -> End:
    return int(said["switch"], 16), int(said["port"])


def check_paths(plan: Plan, layout: Layout) -> None:
    """Check that the controller will use the plan's paths.

    The controller chooses the paths with the fewest hops, and among these the path with the least delay.

    Raises:
        ScenarioError: for the first switch at which the paths differ.
    """
    from narrows.controller import forwarding  # noqa: PLC0415 (needs the extra [controller])
    from narrows.controller.messages import PortDesc  # noqa: PLC0415
    from narrows.controller.topology import Link, Topology  # noqa: PLC0415

    network = Topology(0, 0)
    ports = {(datapath(port.node), port_number(port.link)): port for port in layout.ports}
    for node, kind in enumerate(layout.kinds):
        if kind == "ovs":
            own = [port for port in layout.ports if port.node == node]
            descriptions = (PortDesc(port_number(p.link), p.device, p.mac, True, 0) for p in own)
            network.add_switch(0, datapath(node), tuple(descriptions))
    for a, b in known(plan, layout).links:
        network.lldp(0, a, b)
        network.lldp(0, b, a)

    def delay(link: Link) -> int:
        both = (plan["links"][ports[end].link]["delay"][0][1] for end in (link.a, link.b))
        return int(max(both))

    graph = forwarding.graph_of(network, network.links(), delay)
    at = {port.mac: other for port, other in _pairs(plan, layout)}
    for crossing in layout.crossings:
        if layout.kinds[crossing.node] != "ovs":
            continue
        last = at[crossing.mac]
        ways = dict(forwarding.next_hops(graph, datapath(last.node)))
        ways[datapath(last.node)] = port_number(last.link)
        out = ports[datapath(crossing.node), ways[datapath(crossing.node)]]
        if out.device != crossing.device:
            name = plan["links"][out.link]["name"]
            raise ScenarioError(
                f"found 'ovs' with a path that differs from the controller's: at "
                f"{plan['nodes'][crossing.node]!r} the controller uses link {name!r} (fewest hops), expected "
                "'route', or paths with the fewest hops",
                "kernel.forwarding",
            )
