"""Published topologies: their facts, what scenarios make of them, and mistakes."""

import csv
import importlib.util
import itertools
import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows.errors import ScenarioError
from narrows.scenario import traces
from narrows.scenario.load import load, loads
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve, survey
from narrows.topology import catalogue, hub
from narrows.topology.abilene import abilene, abilene_zoo
from narrows.topology.facts import islands
from narrows.topology.fat_tree import fat_tree

MS = 1_000_000
SCENARIOS = Path(__file__).parents[2] / "scenarios"
CCS, RATE_CONTROLLERS = ["reno", "cubic", "bbr", "brf"], ["brf"]
topohub = pytest.mark.skipif(importlib.util.find_spec("topohub") is None, reason="no topohub")


def named(name, **more):
    return {"name": name, **more}


def scenario(topology, flows, **more):
    return Scenario(topology=topology, flows=flows, **more)


def paths(seen):
    """Switches of each flow's path."""
    return [
        [seen.graph.nodes[seen.graph.links[link].to] for link in path.forth][:-1]
        for path in seen.paths
    ]  # fmt: skip


def rtts(seen):
    links = seen.graph.links
    return [sum(links[link].delay for link in path.forth + path.back) for path in seen.paths]


def max_min(seen):
    """Max-min fair rates of the plan's flows, by filling all equally until a link is full."""
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
    # Two access links of 0.93 ms each way.
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
        "abilene", scale=0.01, queue="50p", delay="3ms", access={"rate": "5gbit", "delay": "1ms"}
    )
    plan = resolve(scenario(topology, [{"from": "STTLng", "to": "SNVAng.host"}]))
    links = {link["name"]: link for link in plan["links"]}
    assert links["IPLSng->ATLAng"]["rate"]["steps"] == [[0, 24_800_000 // 8]]
    assert links["ATLAng->WASHng"]["rate"]["steps"] == [[0, 99_200_000 // 8]]
    assert links["ATLAng->WASHng"]["delay"] == [[0, 3 * MS]]
    assert links["ATLAng->WASHng"]["queue"]["limit"] == {"packets": 50, "bytes": None}
    access = links["STTLng.host->STTLng"]
    assert access["rate"]["steps"] == [[0, 5 * 10**9 // 8]] and access["delay"] == [[0, MS]]
    assert access["queue"]["limit"] == {"packets": None, "bytes": None}
    assert [plan["nodes"][f["to"]] for f in plan["flows"]] == ["SNVAng.host"]


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


def test_groups_take_the_entrys_name_and_stand_beside_other_flows():
    flows = [{"name": "x", "groups": "gfc"}, {"name": "own", "from": "R1", "to": "R5"}]
    plan = resolve(scenario(named("gfc-1"), flows))
    assert [flow["name"] for flow in plan["flows"]] == ["x.A", "x.B", "x.C", "x.D", "x.E", "x.F", "own"]


@pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")
@pytest.mark.parametrize("name", MAX_MIN)
def test_brf_at_all_ports_comes_close_to_max_min(name):
    """With eta = 0.98 of the links and 1448 of 1500 bytes, all flows get 0.95 or so of their share."""
    from narrows import sweep

    results = sweep.run(
        scenario(
            named(name),
            [{"groups": "gfc", "cc": "brf"}],
            controllers=[{"kind": "brf", "link": "*"}],
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


# Controllers at many ports


def controlled(topology, flows, *entries, links=()):
    controllers = [{"kind": "brf", **entry} for entry in entries]
    made = resolve(
        scenario(topology, flows, controllers=controllers, links=list(links)), CCS, RATE_CONTROLLERS
    )
    return [made["links"][c["link"]]["name"] for c in made["controllers"]]


def test_a_star_is_every_core_link_both_ways():
    flows = [{"from": "STTLng", "to": "NYCMng"}]
    own = [{"between": ["me", "STTLng"], "rate": "1mbit"}]
    names = controlled(named("abilene"), flows, {"link": "*"}, links=own)
    assert len(names) == len(set(names)) == 30
    assert {"ATLAM5->ATLAng", "ATLAng->ATLAM5", "STTLng->DNVRng"} < set(names)
    assert not any("host" in name or "me" in name for name in names)
    names = controlled(named("abilene"), flows, {"link": "STTLng->*"}, links=own)
    assert names == ["STTLng->DNVRng", "STTLng->SNVAng"]


def test_a_star_in_a_fat_tree_leaves_out_the_hosts_own_ports():
    names = controlled(named("fat-tree", k=4, rate="1gbit"), [{}], {"link": "*"})
    assert len(names) == 2 * 48 - 16
    assert "e1.1->h1" in names and "h1->e1.1" not in names


def test_patterns_and_lists():
    lot = {"kind": "parking-lot", "hops": 3, "rate": "10mbit", "delay": "1ms"}
    assert controlled(lot, [{}], {"link": "*"}) == [
        "hop1", "hop1.back", "hop2", "hop2.back", "hop3", "hop3.back"
    ]  # fmt: skip
    assert controlled(lot, [{}], {"link": "s*"}) == ["s0->r1", "s1->r1", "s2->r2", "s3->r3"]
    assert controlled(lot, [{}], {"link": "hop?"}) == ["hop1", "hop2", "hop3"]
    assert controlled(lot, [{}], {"links": ["hop2", "r1->r2"]}) == ["hop2", "hop1"]
    assert controlled(lot, [{}], {"link": "hop1"}, {"link": "r2->r*"}) == ["hop1", "hop1.back", "hop2"]


def test_a_name_with_brackets_or_a_star_is_itself_first():
    links = [
        {"name": name, "between": ["a", f"b{i}"], "rate": "1mbit"}
        for i, name in enumerate(["x*", "xy", "x[1]"])
    ]
    flows = [{"from": "a", "to": "b0"}]
    assert controlled(None, flows, {"link": "x*"}, links=links) == ["x*"]
    assert controlled(None, flows, {"link": "x[1]*"}, links=links) == ["x[1]", "x[1].back"]


# Traffic matrices


def test_a_topologys_own_demands_become_limited_flows():
    plan = resolve(scenario(named("abilene"), [{"demands": "sndlib", "scale": 1e-4, "cc": "bbr"}]))
    assert len(plan["flows"]) == 132
    one = next(flow for flow in plan["flows"] if flow["name"] == "LOSAng-CHINng")
    assert one["app"] == {"kind": "limited", "rate": 42_496_900 // 8, "on": None, "off": None}
    assert one["transport"]["cc"] == "bbr"
    assert {plan["nodes"][one[end]] for end in ("from", "to")} == {"LOSAng.host", "CHINng.host"}


def test_demands_from_a_file(tmp_path):
    matrix = "# peak hour\n\nfrom,to,mbit\nSTTLng, NYCMng ,12.5\nNYCMng,STTLng,0\nATLAM5,DNVRng,1e-3\n"
    (tmp_path / "tm.csv").write_text(matrix)
    text = HEAD + "[[flows]]\nname = 'm'\ndemands = 'tm.csv'\nscale = 2\n" + FLOW
    loaded = loads(text, str(tmp_path / "x.toml"))
    plan = resolve(loaded)
    assert [(flow["name"], flow["app"].get("rate")) for flow in plan["flows"]] == [
        ("m.STTLng-NYCMng", 25_000_000 // 8),
        ("m.ATLAM5-DNVRng", 250),
        ("cubic", None),
    ]
    assert list(traces.digests([loaded], tmp_path)) == ["tm.csv"]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_matrix_survives_its_file(data, tmp_path_factory):
    nodes = abilene().nodes
    pair = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)).filter(lambda p: p[0] != p[1])
    rates = st.floats(min_value=1e-5, max_value=1e8)
    matrix = data.draw(st.dictionaries(pair, rates, min_size=1, max_size=30))
    folder = tmp_path_factory.mktemp("matrix")
    with (folder / "tm.csv").open("w", newline="") as file:
        csv.writer(file).writerows((a, b, repr(mbit)) for (a, b), mbit in matrix.items())
    made = scenario(named("abilene"), [{"demands": "tm.csv"}]).with_source(str(folder / "x.toml"))
    plan = resolve(made)
    got = {flow["name"]: flow["app"]["rate"] * 8 for flow in plan["flows"]}
    assert set(got) == {f"{a}-{b}" for a, b in matrix}
    for (a, b), mbit in matrix.items():
        assert math.isclose(got[f"{a}-{b}"], mbit * 1e6, abs_tol=8)


# Every topology


def routed(name, seed, **more):
    """Random pairs of its nodes are routed and their RTTs are sums over links."""
    pick = random.Random(seed)
    facts = catalogue.find(name, more.get("k"))
    pairs = [pick.sample(facts.nodes, 2) for _ in range(5)]
    given_rate = {} if facts.edges[0].rate else {"rate": "1gbit"}
    flows = [{"name": f"f{i}", "from": a, "to": b} for i, (a, b) in enumerate(pairs)]
    seen = survey(
        scenario(
            named(name, **given_rate, **more), flows, controllers=[{"kind": "brf", "link": "*"}], duration="1h",
            probes={"interval": 0},
        )
    )  # fmt: skip
    assert len(seen.plan["flows"]) == 5
    for flow, path in zip(seen.plan["flows"], seen.paths, strict=True):
        assert seen.graph.links[path.forth[0]].source == flow["from"]
        assert seen.graph.links[path.forth[-1]].to == flow["to"]
        assert seen.graph.links[path.back[-1]].to == flow["from"]
    assert all(link["rate"]["steps"][0][1] > 0 for link in seen.plan["links"])
    ports = sum(1 for edge in facts.edges for a in (edge.a, edge.b) if a not in facts.hosts)
    assert len(seen.plan["controllers"]) == ports
    return facts


@pytest.mark.parametrize("name", catalogue.OWN)
@pytest.mark.parametrize("seed", range(5))
def test_every_topology_of_ours_routes_every_flow(name, seed):
    routed(name, seed)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_every_fat_tree_routes_every_flow(k):
    routed("fat-tree", k, k=k)


def of_hub():
    """The Topology Zoo and SNDlib in full, the first few of the rest."""
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
        # SNDlib rounds up its own great circles; topohub's Earth is a little smaller.
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


# Mistakes

HEAD = "[topology]\nname = 'abilene'\n"
FLOW = "[[flows]]\nfrom = 'STTLng'\nto = 'NYCMng'\n"
TREE = "[topology]\nname = 'fat-tree'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("abilene", "abilen") + FLOW, "topology.name: found 'abilen', expected a topology; nearest is 'abilene'"),
        (HEAD.replace("name = 'abilene'", "k = 4") + FLOW, "topology.kind: found nothing, expected this key"),
        (HEAD + "rat = '1mbit'\n" + FLOW, "topology.rat: found an unknown key; nearest is 'rate'"),
        (HEAD + "rate = '0mbit'\n" + FLOW, "topology.rate: found '0mbit', expected more than zero"),
        (HEAD + "rate = '1mbit'\nscale = 2\n" + FLOW, "topology: expected one of rate and scale"),
        (HEAD + "scale = 0\n" + FLOW, "topology.scale: found 0, expected more than 0.0"),
        (HEAD + "scale = 1e-10\n" + FLOW, "topology.scale: found 1e-10 (the link ATLAM5-ATLAng would have 1bit), expected one that leaves from 8bit to 1000000gbit"),
        (HEAD + "delay = '5km'\n" + FLOW, "topology.delay: found '5km', expected 'distance' or a time such as '20ms'"),
        (HEAD + "delay = '1h'\n" + FLOW, "topology.delay: found '1h', expected a time of at most 1000s"),
        (HEAD + "access = { dly = '1ms' }\n" + FLOW, "topology.access.dly: found an unknown key; nearest is 'delay'"),
        (HEAD + "access = { rate = '0mbit' }\n" + FLOW, "topology.access.rate: found '0mbit', expected more than zero"),
        (HEAD + "k = 4\n" + FLOW, "topology.k: found 4, expected this key only with name = 'fat-tree'"),
        (TREE + "rate = '1mbit'\n[[flows]]", "topology.k: found nothing, expected this key with the fat tree"),
        (TREE + "k = 3\nrate = '1mbit'\n[[flows]]", "topology: expected an even k"),
        (TREE + "k = 4\n[[flows]]", "topology.rate: found nothing, expected a rate: 'fat-tree' has no capacities of its own"),
        (TREE + "k = 4\nscale = 2\n[[flows]]", "topology.rate: found nothing, expected a rate: 'fat-tree' has no capacities of its own; scale has nothing to scale"),
        (HEAD + FLOW.replace("STTLng", "STTL"), "flows.0.from: found 'STTL', expected a node; nearest is 'STTLng'"),
        (HEAD + FLOW.replace("NYCMng", "STTLng"), "flows.0.to: found 'STTLng.host', expected another node than from"),
        (HEAD + "[[flows]]", "flows.0.from: found nothing, expected a node"),
        (HEAD + "[[flows]]\ngroups = 'gfc'", "flows.0.groups: found 'gfc', expected it only with the topology gfc-1 or gfc-2"),
        (HEAD + "[[flows]]\ngroups = 'all'", "flows.0.groups: found 'all', expected one of gfc"),
        (HEAD.replace("abilene", "gfc-1") + "[[flows]]\ndemands = 'sndlib'", "flows.0.demands: found 'sndlib', expected a CSV file: 'gfc-1' has no demands (abilene and sndlib/... have)"),
        (HEAD + "[[flows]]\ndemands = 'sndlb'", "flows.0.demands: found 'sndlb', expected 'sndlib' or a readable CSV file (No such file or directory)"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\nscale = 1e-9", "flows.0.scale: found 1e-09 (the demand from 'ATLAM5' to 'ATLAng' would be 1bit), expected one that leaves from 8bit to 1000000gbit"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\nfrom = 'STTLng'", "flows.0: expected no from, to or return_path with demands"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\nsize = '1kB'", "flows.0: expected no size with demands"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\ncount = 2", "flows.0: expected a count of 1 with demands"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\ngroups = 'gfc'", "flows.0: expected one of demands and groups"),
        (HEAD + FLOW + "scale = 2", "flows.0: expected a scale only with demands"),
        (HEAD + FLOW + "[[flows]]\ndemands = 'sndlib'\nscale = 1e-4\ncc = 'cubik'", "flows.1.cc: found 'cubik', expected a congestion controller; nearest is 'cubic'"),
        (HEAD + FLOW + "[[flows]]\ndemands = 'sndlib'\nscale = 1e-4\n[[flows]]\ndemands = 'sndlib'\nscale = 1e-4", "flows.2.name: found 'ATLAM5-ATLAng' again, expected another name"),
        (HEAD + FLOW + "[[controllers]]\nkind = 'brf'", "controllers.0: expected one of link and links"),
        (HEAD + FLOW + "[[controllers]]\nkind = 'brf'\nlink = '*'\nlinks = ['*']", "controllers.0: expected one of link and links"),
        (HEAD + FLOW + "[[controllers]]\nkind = 'brf'\nlinks = []", "controllers.0.links: found an empty list, expected at least 1 of them"),
        (HEAD + FLOW + "[[controllers]]\nkind = 'brf'\nlinks = ['STTLng->*', 'STTLng->DNVR']", "controllers.0.links.1: found 'STTLng->DNVR', expected a link; nearest is 'STTLng->DNVRng'"),
        (HEAD + FLOW + "[[controllers]]\nkind = 'brf'\nlink = 'STLng->*'", "controllers.0.link: found 'STLng->*', expected a link; nearest is 'STTLng->SNVAng'"),
        (HEAD + FLOW + "[[controllers]]\nkind = 'brf'\nlink = '*'\n[[controllers]]\nkind = 'brf'\nlink = 'STTLng->DNVRng'", "controllers.1.link: found 'STTLng->DNVRng' again, expected one controller per link"),
        ("[[links]]\nbetween = ['a', 'b']\nrate = '1mbit'\n[[flows]]\nfrom = 'a'\nto = 'b'\n[[controllers]]\nkind = 'brf'\nlink = '*'", "controllers.0.link: found '*', expected a link between two nodes that have more than one neighbour"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_with_place_and_remedy(text, message):
    with pytest.raises(ScenarioError) as caught:
        resolve(loads(text, "x.toml"), CCS, RATE_CONTROLLERS)
    assert str(caught.value) == f"x.toml: {message}"


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ("STTLng,NYCM,1\n", "tm.csv: line 1: found 'NYCM', expected a node; nearest is 'NYCMng'"),
        ("from,to,mbit\nSTTLng,NYCMng\n", "tm.csv: line 2: found 2 columns, expected from,to,mbit"),
        ("STTLng,NYCMng,-1\n", "tm.csv: line 1: found '-1', expected Mbit/s from 0 to 1000000000"),
        ("STTLng,NYCMng,nan\n", "tm.csv: line 1: found 'nan', expected Mbit/s from 0 to 1000000000"),
        ("STTLng,NYCMng,ten\n", "tm.csv: line 1: found 'ten', expected Mbit/s from 0 to 1000000000"),
        ("# none\n", "tm.csv: found no demands, expected lines such as 'a,b,12.5' (from,to,mbit)"),
        ("STTLng,STTLng,1\n", "tm.csv: line 1: found 'STTLng.host', expected another node than from"),
        ("STTLng,far,1\n", "tm.csv: line 1: found no path from 'STTLng.host' to 'far', expected one"),
    ],
)
def test_mistakes_in_a_matrix_name_its_line(matrix, message, tmp_path):
    (tmp_path / "tm.csv").write_text(matrix)
    text = HEAD + "[[flows]]\ndemands = 'tm.csv'\n[[links]]\nbetween = ['far', 'away']\nrate = '1mbit'\n"
    with pytest.raises(ScenarioError) as caught:
        resolve(loads(text, str(tmp_path / "x.toml")))
    assert str(caught.value) == message


def test_a_missing_package_is_said(monkeypatch):
    monkeypatch.setattr(hub, "installed", lambda: False)
    hub.names.cache_clear()
    try:
        with pytest.raises(ScenarioError) as caught:
            resolve(scenario(named("topozoo/NotThere", rate="1mbit"), [{"from": "a", "to": "b"}]))
        resolve(load(SCENARIOS / "abilene.toml"))
    finally:
        hub.names.cache_clear()
    assert caught.value.key == "topology.name"
    assert (
        caught.value.message
        == "found 'topozoo/NotThere', which is of the package topohub: pip install topohub"
    )


@topohub
@pytest.mark.parametrize(
    "name", ["../topozoo/Abilene", "topozoo/../../data", "/etc/passwd", "topozoo/Abilen"]
)
def test_names_of_topohub_are_names_and_no_paths(name):
    with pytest.raises(ScenarioError, match=r"topology\.name: found .* expected a topology"):
        resolve(scenario(named(name, rate="1mbit"), [{"from": "a", "to": "b"}]))


def test_errors_of_the_plan_are_told_with_the_scenarios_numbers():
    flows = [{"demands": "sndlib", "scale": 1e-4}, {"from": "STTLng", "to": "NYCMng"}]
    controllers = [{"kind": "brf", "link": "STTLng->*"}, {"kind": "brf", "link": "DNVRng->KSCYng"}]
    seen = survey(scenario(named("abilene"), flows, controllers=controllers))
    assert len(seen.plan["controllers"]) == 3

    def told(key):
        return seen.in_scenario(ScenarioError("bad", key)).key

    assert told("controllers.1.params.x") == "controllers.0.params.x"
    assert told("controllers.2.params.x") == "controllers.1.params.x"
    assert told("flows.132.start") == "flows.1.start"
    assert told("flows.131") == "flows.0"
    assert told("links.3.rate") == "links.3.rate"
    assert told("seed") == "seed"


@pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")
def test_the_simulators_errors_name_the_entry():
    from narrows import sweep

    controllers = [
        {"kind": "brf", "link": "STTLng->*"},
        {"kind": "brf", "link": "*->KSCYng", "params": {"etta": 1}},
    ]
    flows = [{"from": "STTLng", "to": "NYCMng", "cc": "brf"}]
    with pytest.raises(ScenarioError, match=r"controllers\.1\.params\.etta: found an unknown key"):
        sweep.run(scenario(named("abilene"), flows, controllers=controllers))
