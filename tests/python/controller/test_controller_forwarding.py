"""Forwarding with simulated switches, in many networks and after many failures."""

from __future__ import annotations

import networkx as nx
import pytest
from fake_switches import BROADCAST, SECOND, Network
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows.controller.domain import Params, PortParams
from narrows.controller.messages import FrameSeen, LldpSeen, Note, PortChanged, RuleGone
from narrows.controller.topology import Kind


def network(graph, params=None):
    """A network with a host at each switch of a graph."""
    free = dict.fromkeys(graph, 1)

    def plug(dpid):
        free[dpid] += 1
        return (dpid, free[dpid] - 1)

    cables = [(plug(a), plug(b)) for a, b in sorted(graph.edges)]
    hosts = {f"0a:00:00:00:00:{dpid:02x}": plug(dpid) for dpid in sorted(graph)}
    return Network(cables, hosts, params)


def settled(graph, params=None):
    net = network(graph, params)
    for dpid in sorted(net.switches):
        net.connect(dpid)
    net.run(6)
    meet(net)
    return net


def meet(net):
    for host in net.hosts:
        net.send(host, BROADCAST)


def check(net):
    """Checks that each packet reaches only its destination, on a shortest path.

    Also checks that a broadcast reaches every other host exactly once. Returns the number of pairs of hosts.
    """
    graph = nx.Graph()
    graph.add_nodes_from(net.connected)
    graph.add_edges_from(
        (a[0], b[0]) for a, b in map(tuple, net.cables - net.cut) if {a[0], b[0]} <= net.connected
    )
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    there = {name: end for name, end in net.hosts.items() if end[0] in net.connected}
    pairs = 0
    for src, (at, _) in there.items():
        reachable = {name for name, (dpid, _) in there.items() if dpid in distance[at]} - {src}
        received, _ = net.send(src, BROADCAST)
        assert sorted(received) == sorted(reachable)
        for dst in sorted(reachable):
            received, hops = net.send(src, dst)
            assert received == [dst]
            assert hops == distance[at][there[dst][0]] + 1
            pairs += 1
    return pairs


@st.composite
def graphs(draw):
    n = draw(st.integers(2, 7))
    tree = [(draw(st.integers(1, b - 1)), b) for b in range(2, n + 1)]
    extra = draw(st.lists(st.tuples(st.integers(1, n), st.integers(1, n)), max_size=8))
    return nx.Graph(tree + [edge for edge in extra if edge[0] != edge[1]])


@settings(max_examples=60)
@given(graphs(), st.randoms(use_true_random=False))
def test_any_network_with_failing_links(graph, rng):
    net = settled(graph)
    n = len(graph)
    assert check(net) == n * (n - 1)
    for _ in range(3):
        cable = tuple(rng.choice(sorted(net.cables, key=sorted)))
        net.toggle(cable, frozenset(cable) in net.cut)
        net.run(3)
        meet(net)
        check(net)
    for cable in list(net.cut):
        net.toggle(tuple(cable), True)
    net.run(3)
    meet(net)
    assert check(net) == n * (n - 1)


@settings(max_examples=30)
@given(graphs(), st.randoms(use_true_random=False))
def test_broadcasts_never_loop_while_switches_change_their_entries(graph, rng):
    net = settled(graph)
    net.lazy = True

    def broadcast():
        net.send(rng.choice(sorted(net.hosts)), BROADCAST)  # fails if the frame loops

    for _ in range(3):
        cable = tuple(rng.choice(sorted(net.cables, key=sorted)))
        net.toggle(cable, frozenset(cable) in net.cut)
        net.work_off(rng, broadcast)
        for _ in range(6):
            net.run(0.5)
            net.work_off(rng, broadcast)


def test_a_new_cable_that_closes_a_ring_causes_no_loop():
    net = settled(nx.Graph([(1, 2), (2, 3)]))
    net.cables.add(frozenset({(1, 9), (3, 9)}))
    net.switches[1].append(9)
    net.switches[3].append(9)
    for dpid in (1, 3):
        net.event(PortChanged(dpid, net.desc((dpid, 9))))
        check_broadcast(net)
    for _ in range(10):
        net.run(0.3)
        check_broadcast(net)
    assert net.send("0a:00:00:00:00:01", "0a:00:00:00:00:03")[1] == 2, "the shortest path is used"


def check_broadcast(net):
    for host in net.hosts:
        received, _ = net.send(host, BROADCAST)
        assert sorted(received) == sorted(set(net.hosts) - {host})


def test_switches_connect_and_disconnect():
    net = settled(nx.cycle_graph([1, 2, 3, 4]))
    assert check(net) == 12
    net.disconnect(2)
    net.rules[2].clear()
    net.run(1)
    assert check(net) == 6
    net.connect(2)
    net.run(6)
    meet(net)
    assert check(net) == 12


def test_a_switch_that_loses_its_controller_causes_no_loop():
    # The disconnected switch still forwards packets by its last flow entries.
    net = settled(nx.complete_graph([1, 2, 3]))
    net.disconnect(3)
    for _ in range(20):
        net.run(1)
        assert net.send("0a:00:00:00:00:01", BROADCAST)[0].count("0a:00:00:00:00:02") == 1


def test_a_new_controller_causes_no_loop_through_a_disconnected_switch():
    net = settled(nx.complete_graph([1, 2, 3]), Params(hold_ns=10 * SECOND))
    net.new_controller()
    net.connect(1)
    net.connect(2)
    for _ in range(20):
        net.run(1)
        assert net.send("0a:00:00:00:00:01", BROADCAST)[0].count("0a:00:00:00:00:02") == 1


@pytest.mark.parametrize("late", [0, 1.5])
def test_a_new_controller_keeps_working_entries(late):
    net = settled(nx.cycle_graph([1, 2, 3, 4, 5]), Params(hold_ns=10 * SECOND))
    net.run(20)
    assert check(net) == 20
    before = {dpid: dict(rules) for dpid, rules in net.rules.items()}
    switches = net.new_controller()
    for dpid in switches:
        net.connect(dpid)
        check_all_reach(net)
        net.run(late)
    check_all_reach(net)
    net.run(12)
    assert net.rules == before, "the network is the same, and so are its entries"
    assert set(net.domain.hosts.by_mac) == set(net.hosts), (
        "the new controller finds the hosts in the switches' entries"
    )
    net.toggle(tuple(next(iter(net.cables))), False)
    net.run(3)
    meet(net)
    assert check(net) == 20


def check_all_reach(net):
    for src in net.hosts:
        for dst in net.hosts:
            if src != dst:
                assert net.send(src, dst)[0] == [dst]


def test_among_paths_of_equal_hops_the_one_with_less_delay_is_used():
    slow = {(1, 1): PortParams(delay_ns=5_000_000)}
    net = settled(nx.Graph([(1, 2), (1, 3), (2, 4), (3, 4)]), Params(hold_ns=0, ports=slow))
    way = [rule.outputs for rule in net.rules[1].values() if rule.match.eth_dst == "0a:00:00:00:00:04"]
    assert way == [(2,)]
    net = settled(nx.Graph([(1, 2), (1, 3), (2, 4), (3, 4)]))
    way = [rule.outputs for rule in net.rules[1].values() if rule.match.eth_dst == "0a:00:00:00:00:04"]
    assert way == [(1,)]


def test_a_host_that_moves_is_found():
    net = settled(nx.path_graph([1, 2, 3]))
    mover = "0a:00:00:00:00:01"
    net.hosts[mover] = (3, 9)
    net.switches[3].append(9)
    net.event(PortChanged(3, net.desc((3, 9))))
    net.run(4)
    net.send(mover, BROADCAST)
    assert net.domain.hosts.by_mac[mover].at == (3, 9)
    assert net.send("0a:00:00:00:00:02", mover) == ([mover], 2)


def test_frames_to_a_silent_host_are_flooded_again():
    net = settled(nx.path_graph([1, 2]))
    gone = next(rule for rule in net.rules[1].values() if rule.match.eth_src)
    del net.rules[1][gone.key]
    net.event(RuleGone(1, gone))
    assert not any(rule.match.eth_dst == gone.match.eth_src for rule in net.rules[2].values())
    assert net.send("0a:00:00:00:00:02", gone.match.eth_src)[0] == [gone.match.eth_src]


def test_hosts_behind_trunks_are_not_learnt():
    net = settled(nx.path_graph([1, 2]))
    trunk = next(port for port in net.domain.topology.ports(Kind.TRUNK))
    net.event(FrameSeen(*trunk, "0a:00:00:00:00:99"))
    assert "0a:00:00:00:00:99" not in net.domain.hosts.by_mac


def test_the_number_of_invented_addresses_is_bounded():
    net = settled(nx.path_graph([1, 2]))
    at = net.hosts["0a:00:00:00:00:01"]
    for n in range(1100):
        net.domain.hosts.learn(0, at, f"0a:00:00:01:{n >> 8:02x}:{n & 255:02x}", None)
    assert sum(host.at == at for host in net.domain.hosts.by_mac.values()) == 1024


def test_a_cable_that_works_in_one_direction_carries_no_traffic():
    net = network(nx.path_graph([1, 2]))
    for dpid in (1, 2):
        net.connect(dpid)
    net.cut |= net.cables  # no LLDP arrives, except in the event below
    net.event(LldpSeen(2, 1, 1, 1))
    assert net.domain.topology.links() == []
    assert net.domain.topology.port((1, 1)).kind is Kind.TRUNK


def test_links_are_noted():
    net = settled(nx.path_graph([1, 2]))
    kinds = [effect.kind for effect in net.notes if isinstance(effect, Note)]
    assert kinds.count("switch-up") == 2 and kinds.count("link-up") == 1 and kinds.count("host-new") == 2
