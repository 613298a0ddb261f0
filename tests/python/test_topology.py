"""Published networks, and the scenarios that use them."""

import importlib.util
import itertools
import random

import pytest
from narrows.errors import ScenarioError
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve, survey
from narrows.topology import catalogue, hub
from narrows.topology.abilene import abilene, abilene_zoo
from narrows.topology.facts import islands
from narrows.topology.fat_tree import fat_tree

MS = 1_000_000
topohub = pytest.mark.skipif(importlib.util.find_spec("topohub") is None, reason="no topohub")


def named(name, **more):
    return {"name": name, **more}


def scenario(topology, flows, **more):
    return Scenario(topology=topology, flows=flows, **more)


def paths(seen):
    return [
        [seen.graph.nodes[seen.graph.links[link].to] for link in path.forth][:-1]
        for path in seen.paths
    ]  # fmt: skip


def rtts(seen):
    links = seen.graph.links
    return [sum(links[link].delay for link in path.forth + path.back) for path in seen.paths]


def max_min(seen):
    """Max-min fair rates. All rates grow equally, and a rate is final when a link on its path is full."""
    left = {i: float(link.rate) for i, link in enumerate(seen.graph.links)}
    flows = [
        (i, path.forth) for i, path in enumerate(seen.paths) for _ in range(seen.plan["flows"][i]["count"])
    ]
    rates = [0.0] * len(flows)
    active = set(range(len(flows)))
    while active:
        load = {}
        for flow in active:
            for link in flows[flow][1]:
                load[link] = load.get(link, 0) + 1
        step = min(left[link] / n for link, n in load.items())
        for flow in active:
            rates[flow] += step
        for link, n in load.items():
            left[link] -= n * step
        full = {link for link in load if left[link] < 1e-3}
        active = {flow for flow in active if not full & set(flows[flow][1])}
    by_name = {}
    for (i, _), rate in zip(flows, rates, strict=True):
        by_name.setdefault(seen.plan["flows"][i]["name"], rate / 1e6)
    return by_name


# Abilene


def test_abilene_is_that_of_pac_30():
    facts = abilene()
    assert len(facts.nodes) == len(facts.positions) == 12 and len(facts.edges) == 15
    assert sum(edge.km for edge in facts.edges) == 14053
    assert {(e.a, e.b): e.rate for e in facts.edges if e.rate != 9_920_000_000} == {
        ("ATLAng", "IPLSng"): 2_480_000_000
    }
    delays = {(e.a, e.b): e.nanos for e in facts.edges}
    assert delays["ATLAM5", "ATLAng"] == 665_000
    assert delays["HSTNng", "LOSAng"] == 10_980_000
    # SNDlib: 132 demands, 3 Tbit/s in all.
    assert len(facts.demands) == 132
    assert sum(d.mbit for d in facts.demands) == 3_000_002


def test_abilene_zoo_is_that_of_pac_31():
    facts = abilene_zoo()
    assert len(facts.nodes) == 11 and len(facts.edges) == 14
    assert {edge.rate for edge in facts.edges} == {9_920_000_000}
    assert "ATLAM5" not in {node for edge in facts.edges for node in (edge.a, edge.b)}
    assert len(facts.demands) == 110


@pytest.mark.parametrize("name", ["abilene", "abilene-zoo"])
@pytest.mark.parametrize(
    ("ends", "path", "one_way"),
    [
        (("STTLng", "NYCMng"), "STTL DNVR KSCY IPLS CHIN NYCM", 23.14),
        (("LOSAng", "NYCMng"), "LOSA HSTN ATLA WASH NYCM", 22.57),
        (("SNVAng", "WASHng"), "SNVA DNVR KSCY IPLS ATLA WASH", 23.28),
    ],
)
def test_shortest_paths_are_those_of_pac_32(name, ends, path, one_way):
    there, back = ({"from": ends[0], "to": ends[1]}, {"from": ends[1], "to": ends[0]})
    seen = survey(scenario(named(name, rate="100mbit"), [there, back]))
    expected = [f"{node}ng" for node in path.split()]
    assert paths(seen) == [expected, expected[::-1]]
    # Each direction also crosses two access links of 0.93 ms.
    assert rtts(seen) == [round((2 * one_way + 4 * 0.93) * MS)] * 2


def test_seattle_to_new_york_has_the_papers_rtt_and_rates():
    seen = survey(scenario(named("abilene", rate="100mbit"), [{"from": "STTLng", "to": "NYCMng"}]))
    assert rtts(seen) == [50 * MS]
    rates = {link["name"]: link["rate"]["steps"][0][1] * 8 for link in seen.plan["links"]}
    assert rates["STTLng.host->STTLng"] == rates["NYCMng->NYCMng.host"] == 10**9
    assert rates["ATLAng->IPLSng"] == rates["STTLng->DNVRng"] == 10**8
    hosts = [node for node in seen.plan["nodes"] if node.endswith(".host")]
    assert hosts == ["STTLng.host", "NYCMng.host"]


def test_capacities_scale_and_the_rest_can_be_set():
    topology = named(
        "abilene",
        scale=0.01,
        queue="50p",
        delay="3ms",
        access={"rate": "5gbit", "delay": "1ms", "jitter": "100us"},
    )
    plan = resolve(scenario(topology, [{"from": "STTLng", "to": "SNVAng.host"}]))
    links = {link["name"]: link for link in plan["links"]}
    assert links["IPLSng->ATLAng"]["rate"]["steps"] == [(0, 24_800_000 // 8)]
    assert links["ATLAng->WASHng"]["rate"]["steps"] == [(0, 99_200_000 // 8)]
    assert links["ATLAng->WASHng"]["delay"] == [(0, 3 * MS)]
    assert links["ATLAng->WASHng"]["queue"]["limit"] == {"packets": 50, "bytes": None}
    access = links["STTLng.host->STTLng"]
    assert access["rate"]["steps"] == [(0, 5 * 10**9 // 8)] and access["delay"] == [(0, MS)]
    assert access["queue"]["limit"] == {"packets": None, "bytes": None}
    # Packets get a random delay when they leave a host, and nowhere else.
    assert access["jitter"] == {"max": MS // 10, "reorder": False}
    assert links["STTLng->STTLng.host"]["jitter"] is links["STTLng->DNVRng"]["jitter"] is None
    assert [plan["nodes"][f["to"]] for f in plan["flows"]] == ["SNVAng.host"]


@pytest.mark.parametrize(("jitter", "shown"), [(0.5, "0.5"), ([1], "a list of 1"), (True, "true")])
def test_a_jitter_without_a_unit_is_refused_as_a_time(jitter, shown):
    topology = named("abilene", access={"jitter": jitter})
    with pytest.raises(ScenarioError) as error:
        scenario(topology, [{"from": "STTLng", "to": "NYCMng"}])
    assert f"topology.access.jitter: found {shown}, expected a time such as '20ms'" in str(error.value)


def test_links_of_ones_own_hang_onto_nodes():
    own = [{"between": ["me", "STTLng"], "rate": "20mbit", "delay": "1ms"}]
    seen = survey(scenario(named("abilene"), [{"from": "me", "to": "DNVRng"}], links=own))
    assert paths(seen) == [["STTLng", "DNVRng"]]
    assert seen.graph.nodes[seen.graph.links[seen.paths[0].forth[0]].source] == "me"


def test_a_return_path_begins_and_ends_at_hosts():
    back = ["SNVAng.host", "SNVAng", "DNVRng", "STTLng", "STTLng.host"]
    flows = [{"from": "STTLng", "to": "SNVAng", "return_path": back}]
    seen = survey(scenario(named("abilene"), flows))
    assert [seen.graph.links[link].name for link in seen.paths[0].back] == [
        f"{a}->{b}" for a, b in itertools.pairwise(back)
    ]


# Fairness configurations

MAX_MIN = {
    "gfc-1": {"A": 50 / 9, "B": 100 / 9, "C": 100 / 3, "D": 50 / 9, "E": 100 / 9, "F": 50},
    "gfc-2": {"A": 10, "B": 5, "C": 35, "D": 35, "E": 35, "F": 10, "G": 5, "H": 52.5},
}


@pytest.mark.parametrize("name", MAX_MIN)
def test_the_flows_of_a_fairness_configuration_have_its_max_min_rates(name):
    seen = survey(scenario(named(name), [{"groups": "gfc", "cc": "brf"}]))
    assert sum(flow["count"] for flow in seen.plan["flows"]) == {"gfc-1": 23, "gfc-2": 22}[name]
    assert {flow["transport"]["cc"] for flow in seen.plan["flows"]} == {"brf"}
    rates = max_min(seen)
    assert {flow[0] for flow in rates} == set(MAX_MIN[name])
    for flow, rate in rates.items():
        assert rate == pytest.approx(MAX_MIN[name][flow[0]], rel=1e-9), flow


def test_groups_have_the_entrys_name_and_can_be_mixed_with_other_flows():
    flows = [{"name": "x", "groups": "gfc"}, {"name": "own", "from": "R1", "to": "R5"}]
    plan = resolve(scenario(named("gfc-1"), flows))
    assert [flow["name"] for flow in plan["flows"]] == ["x.A", "x.B", "x.C", "x.D", "x.E", "x.F", "own"]


@pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")
@pytest.mark.parametrize("name", MAX_MIN)
def test_brf_at_all_ports_comes_close_to_max_min(name):
    """Goodputs are about 0.95 of the share, because eta is 0.98, and 1448 of 1500 bytes are payload."""
    from narrows import sweep

    results = sweep.run(
        scenario(
            named(name),
            [{"groups": "gfc", "cc": "brf"}],
            rate_controllers=[{"kind": "brf", "link": "*"}],
            duration="12s",
            warmup="6s",
        )
    )
    for flow in results.flows.select(["name", "goodput_bps"]).to_pylist():
        share = flow["goodput_bps"] / 1e6 / MAX_MIN[name][flow["name"][0]]
        assert 0.88 < share < 0.97, flow


# Fat tree


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_a_fat_tree_has_its_numbers(k):
    facts = fat_tree(k)
    switches = [node for node in facts.nodes if node not in facts.hosts]
    assert len(facts.hosts) == k**3 // 4
    assert len(switches) == 5 * k * k // 4
    degree = dict.fromkeys(facts.nodes, 0)
    for edge in facts.edges:
        degree[edge.a] += 1
        degree[edge.b] += 1
    assert {degree[switch] for switch in switches} == {k}
    assert {degree[host] for host in facts.hosts} == {1}
    pairs = {frozenset((edge.a, edge.b)) for edge in facts.edges}
    assert len(pairs) == len(facts.edges) == 3 * k**3 // 4


def test_flows_of_a_fat_tree_cross_the_core():
    flows = [{} for _ in range(16)]
    seen = survey(scenario(named("fat-tree", k=4, rate="1gbit"), flows))
    assert {len(path.forth) for path in seen.paths} == {6}
    assert [path[2][0] for path in paths(seen)] == ["c"] * 16
    receivers = {flow["to"] for flow in seen.plan["flows"]}
    assert len(receivers) == 16
    assert not any(node.endswith(".host") for node in seen.plan["nodes"])


# Every topology


def routed(name, seed, **more):
    """Checks that flows between random pairs of hosts have routes, and that all ports are controlled."""
    pick = random.Random(seed)
    facts = catalogue.find(name, more.get("k"))
    pairs = [pick.sample(facts.nodes, 2) for _ in range(5)]
    given_rate = {} if facts.edges[0].rate else {"rate": "1gbit"}
    flows = [{"name": f"f{i}", "from": a, "to": b} for i, (a, b) in enumerate(pairs)]
    seen = survey(
        scenario(
            named(name, **given_rate, **more),
            flows,
            rate_controllers=[{"kind": "brf", "link": "*"}],
            duration="1h",
            probes={"interval": 0},
        )
    )
    assert len(seen.plan["flows"]) == 5
    for flow, path in zip(seen.plan["flows"], seen.paths, strict=True):
        assert seen.graph.links[path.forth[0]].source == flow["from"]
        assert seen.graph.links[path.forth[-1]].to == flow["to"]
        assert seen.graph.links[path.back[-1]].to == flow["from"]
    assert all(link["rate"]["steps"][0][1] > 0 for link in seen.plan["links"])
    ports = sum(1 for edge in facts.edges for a in (edge.a, edge.b) if a not in facts.hosts)
    assert len(seen.plan["rate_controllers"]) == ports
    return facts


@pytest.mark.parametrize("name", catalogue.OWN)
@pytest.mark.parametrize("seed", range(5))
def test_every_topology_of_ours_routes_every_flow(name, seed):
    routed(name, seed)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_every_fat_tree_routes_every_flow(k):
    routed("fat-tree", k, k=k)


def of_hub():
    """All networks of the Topology Zoo and of SNDlib, and some of three other families."""
    names = hub.names()
    few = [name for family in ("caida", "backbone", "gabriel") for name in names if name.startswith(family)][
        ::40
    ]
    return [name for name in names if name.startswith(("topozoo/", "sndlib/"))] + few


@topohub
def test_every_topology_of_topohub_routes_every_flow():
    names = of_hub()
    assert len(names) > 200
    for name in names:
        facts = routed(name, 1)
        assert len(set(facts.nodes)) == len(facts.nodes), name


@topohub
def test_topohub_agrees_with_abilene_as_we_have_it():
    theirs, ours = catalogue.find("sndlib/abilene", None), abilene()
    lengths = {frozenset((e.a, e.b)): e.km for e in theirs.edges}
    assert {frozenset((e.a, e.b)) for e in ours.edges} == set(lengths)
    for edge in ours.edges:
        # SNDlib rounds distances up. topohub computes them with a slightly smaller radius of the Earth.
        assert lengths[frozenset((edge.a, edge.b))] == pytest.approx(edge.km, rel=0.005)
    demands = {(d.source, d.to): d.mbit for d in theirs.demands}
    assert demands == {(d.source, d.to): d.mbit for d in ours.demands}
    plan = resolve(scenario(named("sndlib/polska", rate="1gbit"), [{"demands": "sndlib", "scale": 0.01}]))
    assert len(plan["flows"]) == 66


def test_node_link_form():
    data = {
        "graph": {"demands": {0: {2: 5.0}}},
        "nodes": [
            {"id": 0, "name": "New York", "pos": [-74.0, 40.7]},
            {"id": 1, "name": "Twin"},
            {"id": 2, "name": "Twin"},
            {"id": 3},
        ],
        "edges": [
            {"source": "0", "target": "1", "dist": 100.0},
            {"source": 1, "target": 2, "dist": 0},
            {"source": 2, "target": 3},
            {"source": 3, "target": 3, "dist": 1.0},
        ],
    }
    facts = hub.facts("x/y", data)
    assert facts.nodes == ["New_York", "Twin-1", "Twin-2", "n3"]
    assert [(e.a, e.b, e.nanos) for e in facts.edges] == [
        ("New_York", "Twin-1", 500_000),
        ("Twin-1", "Twin-2", 0),
        ("Twin-2", "n3", 0),
    ]
    assert facts.positions == {"New_York": (-74.0, 40.7)}
    assert [(d.source, d.to, d.mbit) for d in facts.demands] == [("New_York", "Twin-2", 5.0)]


def test_islands_are_found_largest_first():
    assert islands(["a", "b", "c", "d"], [("b", "c"), ("c", "d")]) == [["b", "c", "d"], ["a"]]
    assert islands(["a"], []) == [["a"]]


def test_islands_are_an_error_that_links_mend(monkeypatch):
    facts = hub.facts(
        "x/y",
        {
            "nodes": [{"id": i, "name": c} for i, c in enumerate("abcde")],
            "edges": [{"source": 0, "target": 1, "dist": 9}, {"source": 2, "target": 3, "dist": 9}],
        },
    )
    monkeypatch.setattr(catalogue, "OWN", {"two": lambda: facts})
    flows = [{"from": "a", "to": "b"}]
    try:
        with pytest.raises(ScenarioError) as caught:
            resolve(scenario(named("two", rate="1mbit"), flows))
        assert caught.value.key == "topology.name"
        assert caught.value.message == (
            "found 3 islands in 'two' (a, b, a.host, ...; c, d), expected one; [[links]] may join them"
        )
        bridges = [{"between": [a, b], "rate": "1mbit"} for a, b in (("b", "x"), ("x", "c"), ("d", "e"))]
        resolve(scenario(named("two", rate="1mbit"), flows, links=bridges))
    finally:
        catalogue.find.cache_clear()
