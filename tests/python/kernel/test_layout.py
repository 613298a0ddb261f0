"""The layout of a plan in network namespaces, without a kernel."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows.backends.kernel.changes import changes
from narrows.backends.kernel.commands import commands
from narrows.backends.kernel.layout import WIRE, lay_out, reverse_links
from narrows.backends.kernel.ovs import configuration as ovs_configuration
from narrows.backends.kernel.ovs import flows as ovs_flows
from narrows.backends.kernel.spec import spec
from narrows.errors import ScenarioError
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve

DUMBBELL = """
[topology]
kind = "dumbbell"
rate = "50mbit"
rtt = "20ms"
[[flows]]
[[flows]]
cc = "reno"
"""

THREE = """
[[links]]
between = ["a", "r"]
rate = "1gbit"
queue = "infinite"
[[links]]
between = ["r", "b"]
rate = "50mbit"
delay = "5ms"
queue = "30kB"
back = { rate = "1gbit", delay = "5ms", queue = "100p" }
[[flows]]
from = "a"
to = "b"
"""


@st.composite
def networks(draw):
    """Random connected networks of a few nodes, with random flows."""
    count = draw(st.integers(2, 7))
    links = [(draw(st.integers(0, node - 1)), node) for node in range(1, count)]
    links += draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=5))
    lines = []
    for number, (a, b) in enumerate((a, b) for a, b in links if a != b):
        delay = draw(st.sampled_from(["0ms", "1ms", "20ms"]))
        loss = draw(st.sampled_from(["0%", "1%"]))
        lines += ["[[links]]", f'name = "L{number}"', f'between = ["n{a}", "n{b}"]', 'rate = "10mbit"']
        lines += [f'delay = "{delay}"', f'loss = "{loss}"']
    for _ in range(draw(st.integers(1, 4))):
        a, b = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
        lines += ["[[flows]]", f'from = "n{a}"', f'to = "n{b}"', f"ecn = {str(draw(st.booleans())).lower()}"]
    return "\n".join(lines)


@settings(max_examples=60)
@given(networks())
def test_everything_has_a_place(text):
    plan = resolve(loads(text))
    layout = lay_out(plan)

    assert [port.link for port in layout.ports] == list(range(len(plan["links"])))
    # Each device is one end of one veth pair, in its node's namespace or in `wire`.
    ends = Counter(end for veth in layout.veths for end in veth.ends)
    assert set(ends.values()) == {1}
    for port in layout.ports:
        assert ends[layout.namespace(port.node), port.device] == 1
    in_wire = {device for namespace, device in ends if namespace == WIRE}
    assert in_wire == {relay.ingress for relay in layout.relays} == {relay.egress for relay in layout.relays}

    addresses = [port.address for port in layout.ports]
    addresses += [a for e in layout.endpoints for a in (e.source_address, e.to_address)]
    assert len(set(addresses)) == len(addresses)
    assert all(IPv4Address(address).is_private for address in addresses)
    assert len({port.mac for port in layout.ports}) == len(layout.ports)


@settings(max_examples=60)
@given(networks())
def test_routes_follow_the_plans_paths(text):
    """A packet crosses the same links in the kernel and in the simulator."""
    plan = resolve(loads(text))
    layout = lay_out(plan)
    back = reverse_links(plan["links"])
    routes = {(hop.node, hop.to): hop for hop in layout.hops}
    assert len(routes) == len(layout.hops)
    by_device = {(port.node, port.device): port for port in layout.ports}
    by_address = {port.address: port for port in layout.ports}
    for flow, number in zip(plan["flows"], layout.of_flow, strict=True):
        ends = layout.endpoints[number]
        assert (ends.source, ends.to, ends.klass) == (flow["from"], flow["to"], flow["class"])
        for path, start, end, address in (
            (ends.forth, ends.source, ends.to, ends.to_address),
            (ends.back, ends.to, ends.source, ends.source_address),
        ):
            taken, node = [], start
            while node != end:
                hop = routes[node, address]
                port = by_device[node, hop.device]
                taken.append(port.link)
                assert by_address[hop.via].link == back[port.link]
                node = plan["links"][port.link]["to"]
            assert tuple(taken) == path


@settings(max_examples=30)
@given(networks())
def test_frames_cross_bridges_to_the_next_host(text):
    plan = resolve(loads(text))
    try:
        layout = lay_out(plan, "bridge")
    except ScenarioError as error:
        assert "part at" in str(error)  # a bridge cannot use two links to one neighbour
        return
    table = {(c.node, c.mac): c.device for c in layout.crossings}
    by_device = {(port.node, port.device): port for port in layout.ports}
    macs = {port.address: port for port in layout.ports}
    for hop in layout.hops:
        port = by_device[hop.node, hop.device]
        target = macs[hop.via]
        node = plan["links"][port.link]["to"]
        while layout.kinds[node] == "bridge":
            port = by_device[node, table[node, target.mac]]
            node = plan["links"][port.link]["to"]
        assert node == target.node


def test_a_relay_exists_only_for_links_with_delay_or_loss(plan):
    layout = lay_out(plan(THREE))
    assert [relay.link for relay in layout.relays] == [2, 3]
    assert not any(relay.shapes for relay in layout.relays)
    assert [veth.ends for veth in layout.veths] == [
        (("n0", "l0"), ("n1", "l1")),
        (("n1", "l2"), ("wire", "w2")),
        (("n2", "l3"), ("wire", "w3")),
    ]


@pytest.mark.parametrize("trait", ['policer = { rate = "20mbit", burst = "30kB" }', 'aggregation = "5ms"'])
def test_a_relay_implements_policers_and_aggregation(plan, trait):
    text = THREE.replace('rate = "1gbit"\nqueue', f'rate = "1gbit"\n{trait}\nqueue', 1)
    relays = lay_out(plan(text)).relays
    assert {relay.link for relay in relays if relay.netem is None} >= {0}


def test_commands_of_three_nodes(plan):
    todo = commands(lay_out(plan(THREE)), "P-")
    assert todo.namespaces == ["P-n0", "P-n1", "P-n2", "P-wire"]
    assert todo.queues["P-n1"] == [
        "qdisc add dev l1 root handle 1: stab overhead -14 linklayer ethernet htb default 1",
        "class add dev l1 parent 1: classid 1:1 htb rate 125000000bps ceil 125000000bps "
        "burst 25000 cburst 25000 quantum 1514 prio 0",
        "qdisc add dev l1 parent 1:1 handle 10: pfifo limit 10000000",
        "qdisc add dev l2 root handle 1: stab overhead -14 linklayer ethernet htb default 1",
        "class add dev l2 parent 1: classid 1:1 htb rate 6250000bps ceil 6250000bps "
        "burst 1514 cburst 1514 quantum 1514 prio 0",
        "qdisc add dev l2 parent 1:1 handle 10: bfifo limit 30000",
    ]
    assert todo.addresses["P-n0"] == [
        "link set dev lo up",
        "link set dev l0 up",
        "addr add 10.128.0.1/32 dev l0",
        "addr add 10.0.0.1/32 dev lo",
        "neigh add 10.128.0.2 lladdr 02:6e:00:00:00:01 dev l0 nud permanent",
        "route add 10.0.0.2/32 via 10.128.0.2 dev l0 onlink src 10.0.0.1",
    ]
    assert todo.addresses["P-n1"][-2:] == [
        "neigh add 10.128.0.1 lladdr 02:6e:00:00:00:00 dev l1 nud permanent",
        "route add 10.0.0.1/32 via 10.128.0.1 dev l1 onlink",
    ]
    assert todo.offloads["P-wire"] == [f"ethtool -K w{i} tso off gso off gro off" for i in (2, 3)]


def test_a_bridge_and_a_switch_know_their_neighbours(plan):
    layout = lay_out(plan(THREE), "bridge")
    assert layout.kinds == ["host", "bridge", "host"]
    assert commands(layout, "P-").crossings["P-n1"][-2:] == [
        "fdb replace 02:6e:00:00:00:03 dev l2 master static",
        "fdb replace 02:6e:00:00:00:00 dev l1 master static",
    ]
    switched = lay_out(plan(THREE), "ovs")
    assert ovs_flows(switched, 1) == [
        "dl_dst=02:6e:00:00:00:03,actions=output:3",
        "dl_dst=02:6e:00:00:00:00,actions=output:2",
    ]
    assert commands(switched, "P-").offloads["P-n0"] == ["ethtool -K l0 tso off gso off gro off tx off"]
    assert "datapath_type=netdev" in ovs_configuration(switched, 1)
    switched.datapath = "system"
    assert "datapath_type=system" in ovs_configuration(switched, 1)


def test_classes_ecn_and_return_paths(plan):
    text = THREE.replace(
        'queue = "30kB"',
        'queue = { kind = "htb", classes = [{ rate = "10mbit", ceil = "50mbit" }, { rate = "20mbit" }] }',
    )
    layout = lay_out(plan(text + "class = 1\necn = true\n"))
    todo = commands(layout, "P-")
    assert todo.queues["P-n1"][-1] == (
        "filter add dev l2 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.2/32 flowid 1:2"
    )
    assert [line for line in todo.queues["P-n1"] if "classid" in line][-2:] == [
        "class add dev l2 parent 1:1000 classid 1:1 htb rate 1250000bps ceil 6250000bps "
        "burst 1514 cburst 1514 quantum 1514 prio 0",
        "class add dev l2 parent 1:1000 classid 1:2 htb rate 2500000bps ceil 2500000bps "
        "burst 1514 cburst 1514 quantum 1514 prio 0",
    ]
    assert todo.addresses["P-n0"][-1].endswith("features ecn")


def test_an_initial_window_other_than_linux_has_is_a_part_of_the_senders_route(plan):
    def routes(more):
        addresses = commands(lay_out(plan(THREE + more)), "P-").addresses
        return [line for lines in addresses.values() for line in lines if line.startswith("route add")]

    assert not [route for route in routes("") if "initcwnd" in route]
    changed = [route for route in routes("initial_window = 2\n") if "initcwnd" in route]
    assert len(changed) == 2  # a route for each direction
    assert all(" src " in route and route.endswith("initcwnd 2") for route in changed)


def test_rates_that_change_are_changes_of_the_class(plan):
    text = THREE.replace('queue = "30kB"', 'at = [{ time = "2s", rate = "20mbit" }]')
    found = changes(lay_out(plan(text)))
    assert [(change.time, change.namespace) for change in found] == [
        (2_000_000_000, "n1"),
        (2_000_000_000, "n2"),  # a change of a link applies to both directions
    ]
    assert "class change dev l2 parent 1: classid 1:1 htb rate 2500000bps" in found[0].line


def test_an_outage_is_the_relays(plan):
    text = THREE.replace('queue = "30kB"', 'at = [{ time = "2s", rate = "0mbit" }]\nqueue = "30kB"')
    layout = lay_out(plan(text))
    assert [port.queue is None for port in layout.ports] == [False, False, True, True]
    assert all(relay.shapes for relay in layout.relays)


@pytest.mark.parametrize("queue", ["codel", "fq-codel", "red"])
def test_a_queue_that_is_not_there_gives_a_one_line_error(plan, queue):
    with pytest.raises(ScenarioError, match=r"expected a queue that the kernel backend supports"):
        lay_out(plan(THREE.replace('"30kB"', f'"{queue}"')))


def test_hosts_have_fq_if_asked(plan):
    text = THREE + '[kernel]\nhost_queue = "fq"\n'
    layout = lay_out(plan(text))
    kinds = {layout.kinds[port.node] for port in layout.ports if port.queue.leaf.fq}
    assert kinds == {"host"} and "fq" in layout.disciplines
    lines = [line for queues in commands(layout, "P-").queues.values() for line in queues]
    assert any(" fq limit 10000000 flow_limit 10000000" in line for line in lines)
    with pytest.raises(ScenarioError, match=r"^kernel.host_queue: found 'fq', expected 'fifo' or a link"):
        lay_out(plan(text.replace('"infinite"', '"100p"')))


def test_equal_paths_need_the_simulator(plan):
    with pytest.raises(
        ScenarioError, match="found true, expected false: on real stacks, each pair has one path"
    ):
        lay_out(plan("ecmp = true\n" + THREE))


def test_the_spec_names_every_flow_queue_and_relay(plan):
    given_plan = plan(DUMBBELL)
    layout = lay_out(given_plan)
    told = spec(given_plan, layout, "P-", 5, 10)
    assert [flow["flow"] for flow in told["flows"]] == [0, 1]
    assert len({flow["port"] for flow in told["flows"]}) == 2
    assert {queue["link"] for queue in told["queues"]} == set(range(len(given_plan["links"])))
    assert {relay["link"] for relay in told["relays"]} == set(layout.relayed)
    assert (
        set(told["namespaces"]) == {"s1", "s2", "d1", "d2"} & set(given_plan["nodes"]) or told["namespaces"]
    )
