"""Published networks, and the scenarios that use them."""

import importlib.util
import itertools

import pytest
from narrows import _native
from narrows.errors import ScenarioError
from narrows.scenario import hub
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve, survey

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


def test_flows_of_a_fat_tree_cross_the_core():
    flows = [{} for _ in range(16)]
    seen = survey(scenario(named("fat-tree", k=4, rate="1gbit"), flows))
    assert {len(path.forth) for path in seen.paths} == {6}
    assert [path[2][0] for path in paths(seen)] == ["c"] * 16
    receivers = {flow["to"] for flow in seen.plan["flows"]}
    assert len(receivers) == 16
    assert not any(node.endswith(".host") for node in seen.plan["nodes"])


# Every topology


OWN, OTHERS = _native.scenario_networks(hub.folder())


def routed(name, seed, **more):
    """Checks that flows between random pairs of all nodes have routes, and that all ports are controlled."""
    rate = {} if name.startswith(("abilene", "gfc")) else {"rate": "1gbit"}
    seen = survey(
        scenario(
            named(name, **rate, **more),
            [{"pattern": "permutation"}],
            rate_controllers=[{"kind": "brf", "link": "*"}],
            duration="1h",
            probes={"interval": 0},
            seed=seed,
        )
    )
    links, hosts = seen.graph.links, seen.graph.hosts
    assert {seen.plan["nodes"][flow["from"]] for flow in seen.plan["flows"]} == hosts
    for flow, path in zip(seen.plan["flows"], seen.paths, strict=True):
        assert links[path.forth[0]].source == flow["from"]
        assert links[path.forth[-1]].to == flow["to"]
        assert links[path.back[-1]].to == flow["from"]
    assert all(link["rate"]["steps"][0][1] > 0 for link in seen.plan["links"])
    names = seen.graph.nodes
    assert len(set(names)) == len(names), name
    # A fat tree contains its hosts and their links. Other networks contain only the links between switches.
    of_switches = [link for link in links if names[link.source] not in hosts]
    ports = [link for link in of_switches if name == "fat-tree" or names[link.to] not in hosts]
    assert len(seen.plan["rate_controllers"]) == len(ports)


@pytest.mark.parametrize("name", [name for name, _ in OWN if name != "fat-tree"])
@pytest.mark.parametrize("seed", range(5))
def test_every_topology_of_ours_routes_every_flow(name, seed):
    routed(name, seed)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_every_fat_tree_routes_every_flow(k):
    routed("fat-tree", k, k=k)


def of_hub():
    """All networks of the Topology Zoo and of SNDlib, and some of three other families."""
    few = [name for family in ("caida", "backbone", "gabriel") for name in OTHERS if name.startswith(family)][
        ::40
    ]
    return [name for name in OTHERS if name.startswith(("topozoo/", "sndlib/"))] + few


@topohub
def test_every_topology_of_topohub_routes_every_flow():
    names = of_hub()
    assert len(names) > 200
    for name in names:
        routed(name, 1)


@topohub
def test_topohub_agrees_with_abilene_as_we_have_it():
    flows = [{"demands": "sndlib", "scale": 1e-4}]
    theirs = survey(scenario(named("sndlib/abilene", rate="1gbit"), flows))
    ours = survey(scenario(named("abilene", rate="1gbit"), flows))
    delays = {link.name: link.delay for link in theirs.graph.links}
    assert {link.name for link in ours.graph.links} == set(delays)
    for link in ours.graph.links:
        # SNDlib rounds distances up. topohub computes them with a slightly smaller radius of the Earth. Our
        # access links have the delay of PAC-32.
        if ".host" not in link.name:
            assert delays[link.name] == pytest.approx(link.delay, rel=0.005)
    demands, expected = (
        {flow["name"]: flow["app"] for flow in seen.plan["flows"]} for seen in (theirs, ours)
    )
    assert demands == expected and len(demands) == 132
    plan = resolve(scenario(named("sndlib/polska", rate="1gbit"), [{"demands": "sndlib", "scale": 0.01}]))
    assert len(plan["flows"]) == 66
