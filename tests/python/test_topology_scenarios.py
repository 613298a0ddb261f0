"""Scenarios on published networks: controllers at many ports, traffic matrices, mistakes."""

import csv
import importlib.util
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows.errors import ScenarioError
from narrows.scenario import hub
from narrows.scenario.inputs import digests
from narrows.scenario.load import load, loads
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve, survey

SCENARIOS = Path(__file__).parents[2] / "scenarios"
CCS, RATE_CONTROLLERS = ["reno", "cubic", "bbr", "brf"], ["brf"]
topohub = pytest.mark.skipif(importlib.util.find_spec("topohub") is None, reason="no topohub")
HEAD = "[topology]\nname = 'abilene'\n"
FLOW = "[[flows]]\nfrom = 'STTLng'\nto = 'NYCMng'\n"
TREE = "[topology]\nname = 'fat-tree'\n"


def named(name, **more):
    return {"name": name, **more}


def scenario(topology, flows, **more):
    return Scenario(topology=topology, flows=flows, **more)


# Controllers at many ports


def controlled(topology, flows, *entries, links=()):
    controllers = [{"kind": "brf", **entry} for entry in entries]
    made = resolve(
        scenario(topology, flows, rate_controllers=controllers, links=list(links)), CCS, RATE_CONTROLLERS
    )
    return [made["links"][c["link"]]["name"] for c in made["rate_controllers"]]


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
    assert list(digests([loaded], tmp_path)) == ["tm.csv"]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_matrix_survives_its_file(data, tmp_path_factory):
    flow = {"from": "STTLng", "to": "NYCMng"}
    nodes = resolve(scenario(named("abilene"), [flow]))["nodes"][:12]
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


# Mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("abilene", "abilen") + FLOW, "topology.name: found 'abilen', expected a network; nearest is 'abilene'"),
        (HEAD.replace("name = 'abilene'", "k = 4") + FLOW, "topology.kind: found nothing, expected a kind (dumbbell, parking-lot, star), or a name that `narrows list networks` has"),
        (HEAD + "rat = '1mbit'\n" + FLOW, "topology.rat: found an unknown key; nearest is 'rate'"),
        (HEAD + "rate = '0mbit'\n" + FLOW, "topology.rate: found '0mbit', expected more than zero"),
        (HEAD + "rate = '1mbit'\nscale = 2\n" + FLOW, "topology: expected one of rate and scale"),
        (HEAD + "scale = 0\n" + FLOW, "topology.scale: found 0, expected more than 0.0"),
        (HEAD + "scale = 1e-10\n" + FLOW, "topology.scale: found 1e-10 (the link ATLAM5-ATLAng would have 1bit), expected a scale that gives a rate from 8bit to 1000000gbit"),
        (HEAD + "delay = '5km'\n" + FLOW, "topology.delay: found '5km', expected 'distance' or a time such as '20ms'"),
        (HEAD + "delay = '1h'\n" + FLOW, "topology.delay: found '1h', expected a time of at most 1000s"),
        (HEAD + "access = { dly = '1ms' }\n" + FLOW, "topology.access.dly: found an unknown key; nearest is 'delay'"),
        (HEAD + "access = { rate = '0mbit' }\n" + FLOW, "topology.access.rate: found '0mbit', expected more than zero"),
        (HEAD + "k = 4\n" + FLOW, "topology.k: found 4, expected this key only with name = 'fat-tree'"),
        (TREE + "rate = '1mbit'\n[[flows]]", "topology.k: found nothing, expected this key with the fat tree"),
        (TREE + "k = 3\nrate = '1mbit'\n[[flows]]", "topology: expected an even k"),
        (TREE + "k = 4\n[[flows]]", "topology.rate: found nothing, expected a rate: 'fat-tree' has no capacities of its own"),
        (TREE + "k = 4\nscale = 2\n[[flows]]", "topology.rate: found nothing, expected a rate: 'fat-tree' has no capacities of its own; scale has no effect"),
        (HEAD + FLOW.replace("STTLng", "STTL"), "flows.0.from: found 'STTL', expected a node; nearest is 'STTLng'"),
        (HEAD + FLOW.replace("NYCMng", "STTLng"), "flows.0.to: found 'STTLng.host', expected another node than from"),
        (HEAD + "[[flows]]", "flows.0.from: found nothing, expected a node"),
        (HEAD + "[[flows]]\ngroups = 'gfc'", "flows.0.groups: found 'gfc', expected groups only with the topology gfc-1 or gfc-2"),
        (HEAD + "[[flows]]\ngroups = 'all'", "flows.0.groups: found 'all', expected one of gfc"),
        (HEAD.replace("abilene", "gfc-1") + "[[flows]]\ndemands = 'sndlib'", "flows.0.demands: found 'sndlib', expected a CSV file: 'gfc-1' has no demands (abilene and sndlib/... have demands)"),
        (HEAD + "[[flows]]\ndemands = 'sndlb'", "flows.0.demands: found 'sndlb', expected 'sndlib' or a readable CSV file (No such file or directory)"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\nscale = 1e-9", "flows.0.scale: found 1e-09 (the demand from 'ATLAM5' to 'ATLAng' would be 1bit), expected a scale that gives a rate from 8bit to 1000000gbit"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\nfrom = 'STTLng'", "flows.0: expected no from, to or return_path with demands"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\nsize = '1kB'", "flows.0: expected no size with demands"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\ncount = 2", "flows.0: expected a count of 1 with demands"),
        (HEAD + "[[flows]]\ndemands = 'sndlib'\ngroups = 'gfc'", "flows.0: expected one of demands and groups"),
        (HEAD + FLOW + "scale = 2", "flows.0: expected a scale only with demands"),
        (HEAD + FLOW + "[[flows]]\ndemands = 'sndlib'\nscale = 1e-4\ncc = 'cubik'", "flows.1.cc: found 'cubik', expected a congestion controller; nearest is 'cubic'"),
        (HEAD + FLOW + "[[flows]]\ndemands = 'sndlib'\nscale = 1e-4\n[[flows]]\ndemands = 'sndlib'\nscale = 1e-4", "flows.2.name: found 'ATLAM5-ATLAng' again, expected another name"),
        (HEAD + FLOW + "[[rate_controllers]]\nkind = 'brf'", "rate_controllers.0: expected one of link and links"),
        (HEAD + FLOW + "[[rate_controllers]]\nkind = 'brf'\nlink = '*'\nlinks = ['*']", "rate_controllers.0: expected one of link and links"),
        (HEAD + FLOW + "[[rate_controllers]]\nkind = 'brf'\nlinks = []", "rate_controllers.0.links: found an empty list, expected at least 1 of them"),
        (HEAD + FLOW + "[[rate_controllers]]\nkind = 'brf'\nlinks = ['STTLng->*', 'STTLng->DNVR']", "rate_controllers.0.links.1: found 'STTLng->DNVR', expected a link; nearest is 'STTLng->DNVRng'"),
        (HEAD + FLOW + "[[rate_controllers]]\nkind = 'brf'\nlink = 'STLng->*'", "rate_controllers.0.link: found 'STLng->*', expected a link; nearest is 'STTLng->SNVAng'"),
        (HEAD + FLOW + "[[rate_controllers]]\nkind = 'brf'\nlink = '*'\n[[rate_controllers]]\nkind = 'brf'\nlink = 'STTLng->DNVRng'", "rate_controllers.1.link: found 'STTLng->DNVRng' again, expected one rate controller per link"),
        ("[[links]]\nbetween = ['a', 'b']\nrate = '1mbit'\n[[flows]]\nfrom = 'a'\nto = 'b'\n[[rate_controllers]]\nkind = 'brf'\nlink = '*'", "rate_controllers.0.link: found '*', expected a link between two nodes that have more than one neighbour"),
    ],
)  # fmt: skip
def test_mistakes_give_a_one_line_error_with_place_and_remedy(text, message):
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


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(hub, "folder", lambda: None)
    with pytest.raises(ScenarioError) as caught:
        resolve(scenario(named("topozoo/NotThere", rate="1mbit"), [{"from": "a", "to": "b"}]))
    resolve(load(SCENARIOS / "abilene.toml"))
    assert caught.value.key == "topology.name"
    assert (
        caught.value.message
        == "found 'topozoo/NotThere', a network of the package topohub; try: pip install 'narrows[topologies]'"
    )


@topohub
@pytest.mark.parametrize(
    "name", ["../topozoo/Abilene", "topozoo/../../data", "/etc/passwd", "topozoo/Abilen"]
)
def test_names_of_topohub_are_names_and_no_paths(name):
    with pytest.raises(ScenarioError, match=r"topology\.name: found .* expected a network"):
        resolve(scenario(named(name, rate="1mbit"), [{"from": "a", "to": "b"}]))


def test_errors_of_the_plan_use_the_scenarios_numbers():
    flows = [{"demands": "sndlib", "scale": 1e-4}, {"from": "STTLng", "to": "NYCMng"}]
    controllers = [{"kind": "brf", "link": "STTLng->*"}, {"kind": "brf", "link": "DNVRng->KSCYng"}]
    seen = survey(scenario(named("abilene"), flows, rate_controllers=controllers))
    assert len(seen.plan["rate_controllers"]) == 3

    def told(key):
        return seen.in_scenario(ScenarioError("bad", key)).key

    assert told("rate_controllers.1.params.x") == "rate_controllers.0.params.x"
    assert told("rate_controllers.2.params.x") == "rate_controllers.1.params.x"
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
    with pytest.raises(ScenarioError, match=r"rate_controllers\.1\.params\.etta: found an unknown key"):
        sweep.run(scenario(named("abilene"), flows, rate_controllers=controllers))
