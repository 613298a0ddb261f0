"""Computes the flow entries of each switch: shortest paths to known hosts, and a tree for all other frames.

Table 0 matches the source. Frames that arrive at trunk or edge ports continue in table 1. All other frames
are dropped. If the source of a frame is not known at the edge where the frame arrives, the controller also
gets a copy. Table 1 matches the destination. Frames to a known host take the shortest path, and all other
frames take the tree. Forwarding a packet never needs the controller, so the network continues to work if the
controller fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import networkx as nx

from narrows.controller.hosts import Host
from narrows.controller.messages import Match, Rule, RuleKey
from narrows.controller.topology import Kind, Link, Topology

SOURCES, DESTINATIONS = 0, 1
ETH_LLDP, ETH_ARP, ETH_IP, ETH_IPV6 = 0x88CC, 0x0806, 0x0800, 0x86DD
NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT = 135, 136
"""Types of ICMPv6 messages (RFC 4861)."""
_P_LLDP, _P_BRIDGE, _P_ARP, _P_ADDRESS, _P_SOURCE, _P_PORT = 100, 90, 60, 55, 50, 10
_P_HOST, _P_FLOOD = 20, 10
BRIDGE_GROUP = ("01:80:c2:00:00:00", "ff:ff:ff:ff:ff:f0")
"""Addresses that no bridge forwards (IEEE 802.1Q table 8-1)."""
HOP = 1 << 50
"""Weight of a hop. It exceeds the delay of any path in ns, so the delay decides only between paths with
equally many hops."""

Delay = Callable[[Link], int]
"""Propagation delay of a link in ns."""

FLOOD_KEY: RuleKey = (DESTINATIONS, _P_FLOOD, Match())
"""Key of the entry with the lowest priority, which handles broadcast, multicast and unknown hosts."""


def desired(topology: Topology, hosts: Iterable[Host], delay: Delay, idle_s: int) -> list[tuple[int, Rule]]:
    """The entries of every connected switch, as pairs of datapath id and entry.

    The entries for a host are in the order of distance from the host, nearest switch first. If they are
    installed in this order, a switch gets its entry only after the switches that follow on the path to the
    host.
    """
    rules: list[tuple[int, Rule]] = []

    def add(dpid: int, rule: Rule) -> None:
        rules.append((dpid, rule))

    links = topology.links()
    graph = graph_of(topology, links, delay)
    flood = flood_ports(topology, graph)
    for dpid in topology.switches:
        add(dpid, Rule(SOURCES, _P_LLDP, Match(eth_type=ETH_LLDP), to_controller=True))
        address, mask = BRIDGE_GROUP
        add(dpid, Rule(SOURCES, _P_BRIDGE, Match(eth_dst=address, eth_dst_mask=mask)))
        add(dpid, Rule(*FLOOD_KEY, outputs=flood[dpid]))
    for dpid, number in topology.ports(Kind.EDGE):
        match = Match(in_port=number)
        add(dpid, Rule(SOURCES, _P_PORT, match, to_controller=True, goto=DESTINATIONS))
        # The entries for ARP and neighbour discovery report further IP addresses of a known host, so that
        # users can search for these addresses.
        arp = Match(in_port=number, eth_type=ETH_ARP)
        add(dpid, Rule(SOURCES, _P_ARP, arp, to_controller=True, goto=DESTINATIONS))
        for kind in (NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT):
            found = Match(in_port=number, eth_type=ETH_IPV6, icmp6_type=kind)
            add(dpid, Rule(SOURCES, _P_ARP, found, to_controller=True, goto=DESTINATIONS))
    for dpid, number in sorted(end for link in links for end in (link.a, link.b)):
        add(dpid, Rule(SOURCES, _P_PORT, Match(in_port=number), goto=DESTINATIONS))
    ways: dict[int, list[tuple[int, int]]] = {}
    for host in sorted(hosts, key=lambda host: host.mac):
        dpid, number = host.at
        port = topology.port(host.at)
        if port is None or port.kind is not Kind.EDGE:
            continue
        source = Match(in_port=number, eth_src=host.mac)
        add(dpid, Rule(SOURCES, _P_SOURCE, source, goto=DESTINATIONS, idle_s=idle_s))
        # The IP address of a host is unknown if the host was learnt from the entries of an earlier
        # controller. The following entries report the host's next packet, which contains the address.
        for eth_type in () if host.ips else (ETH_IP, ETH_IPV6):
            packet = Match(in_port=number, eth_src=host.mac, eth_type=eth_type)
            add(dpid, Rule(SOURCES, _P_ADDRESS, packet, to_controller=True, goto=DESTINATIONS))
        if dpid not in ways:
            ways[dpid] = next_hops(graph, dpid)
        for at, out in [(dpid, number), *ways[dpid]]:
            add(at, Rule(DESTINATIONS, _P_HOST, Match(eth_dst=host.mac), outputs=(out,)))
    return rules


def graph_of(topology: Topology, links: Iterable[Link], delay: Delay) -> nx.Graph[int]:
    """The graph of the switches and their links.

    If links are parallel, the graph has only the link with the shortest delay. If delays are equal, it has
    the link with the lowest port number.
    """
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(sorted(topology.switches))
    for link in links:
        a, b = link.a[0], link.b[0]
        weight = HOP + max(0, delay(link))
        if a != b and (not graph.has_edge(a, b) or weight < graph[a][b]["weight"]):
            graph.add_edge(a, b, weight=weight, link=link, ports={a: link.a[1], b: link.b[1]})
    return graph


def next_hops(graph: nx.Graph[int], to: int) -> list[tuple[int, int]]:
    """Every other switch that can reach `to`, nearest first, with its port on the shortest path to `to`."""
    distance = nx.single_source_dijkstra_path_length(graph, to, weight="weight")
    hops = []
    for dpid, far in distance.items():
        if dpid != to:
            ways = [
                (edge["ports"][dpid])
                for neighbour, edge in graph[dpid].items()
                if distance[neighbour] + edge["weight"] == far
            ]
            hops.append((dpid, min(ways)))
    return hops


def flood_ports(topology: Topology, graph: nx.Graph[int]) -> dict[int, tuple[int, ...]]:
    """For each switch, its edge ports, and its ports in a common spanning tree."""
    ports: dict[int, set[int]] = {dpid: set() for dpid in topology.switches}
    for dpid, number in topology.ports(Kind.EDGE):
        ports[dpid].add(number)
    for a, b, edge in nx.minimum_spanning_edges(graph, weight="weight"):
        ports[a].add(edge["ports"][a])
        ports[b].add(edge["ports"][b])
    return {dpid: tuple(sorted(numbers)) for dpid, numbers in ports.items()}


def adopted_hosts(rules: Iterable[Rule]) -> list[tuple[int, str]]:
    """Ports and addresses of the hosts in a switch's existing entries."""
    return [
        (rule.match.in_port, rule.match.eth_src)
        for rule in rules
        if rule.table == SOURCES
        and rule.match.in_port is not None
        and rule.match.eth_src is not None
        and rule.match.eth_type is None
    ]


def adopted_trunks(rules: Iterable[Rule]) -> list[int]:
    """Ports that a switch's existing entries treat as trunks."""
    return [
        rule.match.in_port
        for rule in rules
        if rule.table == SOURCES
        and rule.match.in_port is not None
        and rule.match.eth_src is None
        and not rule.to_controller
    ]
