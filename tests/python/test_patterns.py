"""Scenario keys that describe many flows: pairs of hosts, equal paths, measured sizes."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows import units
from narrows.backends.sim import Simulator
from narrows.errors import ScenarioError
from narrows.results import summary
from narrows.scenario import schema
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve
from narrows.sweep import run

TREE = "[topology]\nname = 'fat-tree'\nk = 4\nrate = '100mbit'\n[[flows]]\n"


def pairs(flow, seed=1, head=TREE):
    scenario = loads(f"seed = {seed}\n{head}{flow}")
    made = resolve(scenario)
    nodes = made["nodes"]
    return [(nodes[f["from"]], nodes[f["to"]]) for f in made["flows"]]


@given(seed=st.integers(0, 2**63 - 1), k=st.sampled_from([2, 4, 6]))
@settings(max_examples=30, deadline=None)
def test_in_a_permutation_each_host_sends_to_another_and_receives_once(seed, k):
    found = pairs("pattern = 'permutation'", seed, TREE.replace("k = 4", f"k = {k}"))
    hosts = [f"h{i + 1}" for i in range(k**3 // 4)]
    assert [a for a, _ in found] == hosts
    assert sorted(b for _, b in found) == sorted(hosts)
    assert all(a != b for a, b in found)


def test_the_seed_draws_the_pairs():
    drawn = {tuple(pairs("pattern = 'permutation'", seed)) for seed in range(5)}
    assert len(drawn) == 5
    assert pairs("pattern = 'random'", 3) == pairs("pattern = 'random'", 3)


def test_patterns_of_pairs():
    hosts = [f"h{i}" for i in range(1, 17)]
    everything = [(a, b) for a in hosts for b in hosts if a != b]
    assert pairs("pattern = 'all-to-all'") == everything
    assert pairs("pattern = 'incast'\nto = 'h3'") == [(a, "h3") for a in hosts if a != "h3"]
    drawn = pairs("pattern = 'random'\nto = ['h1', 'h2']")
    assert [a for a, _ in drawn] == hosts and {b for _, b in drawn} == {"h1", "h2"}
    assert all(a != b for a, b in drawn)


def test_lists_of_ends_and_names_with_wildcards():
    assert pairs("from = ['h1', 'h2']\nto = 'h9'\ncount = 3") == [("h1", "h9"), ("h2", "h9")]
    assert pairs("from = ['h1?']\nto = ['h1']") == [(f"h1{i}", "h1") for i in range(7)]
    made = resolve(loads(f"{TREE}name = 'x'\nfrom = ['h1', 'h2']\nto = 'h9'\ncount = 3"))
    assert [(f["name"], f["count"]) for f in made["flows"]] == [("x.h1-h9", 3), ("x.h2-h9", 3)]


def test_hosts_of_other_networks():
    star = (
        "[[links]]\nbetween = ['a', 'm']\nrate = '1mbit'\n[[links]]\nbetween = ['b', 'm']\nrate = '1mbit'\n"
    )
    assert pairs("pattern = 'all-to-all'", head=star + "[[flows]]\n") == [("a", "b"), ("b", "a")]
    bell = "[topology]\nkind = 'dumbbell'\nrate = '1mbit'\nrtt = '20ms'\n[[flows]]\n"
    assert pairs("from = ['s*']\nto = ['d*']", head=bell) == [("s1", "d1")]
    published = "[topology]\nname = 'abilene'\n[[flows]]\n"
    assert len(pairs("pattern = 'permutation'", head=published)) == 12


def test_ecmp_spreads_a_permutation_over_the_core():
    text = "duration = '200ms'\n" + TREE + "pattern = 'permutation'\nstart_jitter = '1ms'"
    used, carried = {}, {}
    for ecmp in ("false", "true"):
        flows = run(loads(f"ecmp = {ecmp}\nprobes.links = 'all'\n{text}"), jobs=1)
        links = flows.table("links").to_pylist()
        used[ecmp] = sum(r["name"].startswith("c") and r["offered_packets"] > 0 for r in links)
        carried[ecmp] = sum(r["goodput_bps"] for r in flows.table("flows").to_pylist())
    assert used["true"] > used["false"]
    assert carried["true"] > carried["false"]


DISTRIBUTIONS = json.loads(schema.text())["$defs"]["SizeDistribution"]["properties"]["distribution"]["enum"]
MEASURED = [name for name in DISTRIBUTIONS if name not in ("fixed", "exponential", "pareto")]


def points_of(name, mean=None):
    """The points of a measured distribution in a plan."""
    text = sized(f"'{name}'" if mean is None else f"'{name}', mean = '{mean}B'")
    (app,) = [f["app"] for f in resolve(loads(text))["flows"]]
    assert app["size"]["kind"] == "empirical"
    return app["size"]["points"]


@pytest.mark.parametrize("name", MEASURED)
def test_measured_distributions_are_distributions(name):
    points = points_of(name)
    sizes, shares = zip(*points, strict=True)
    assert list(sizes) == sorted(set(sizes)) and list(shares) == sorted(set(shares))
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    mean = np.trapezoid(sizes, shares)
    assert mean == pytest.approx(drawn_mean(points), rel=1e-3)
    half = points_of(name, round(mean / 2))
    assert half[1][0] == pytest.approx(points[1][0] / 2, rel=1e-3)


def test_the_format_and_its_page_have_all_measured_distributions():
    assert len(MEASURED) == 3
    page = (Path(__file__).parents[2] / "docs/reference/scenarios.md").read_text()
    for name in MEASURED:
        sizes, shares = zip(*points_of(name), strict=True)
        small = 100 * np.interp(10_000, sizes, shares)
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        _, _, mean, share, *_ = [cell.strip() for cell in row.split("|")]
        expected = np.trapezoid(sizes, shares)
        assert units.parse_size(mean.replace(" ", "")) == pytest.approx(expected, rel=5e-3)
        assert share == f"{small:.0f} %"


def drawn_mean(points):
    """The mean of sizes drawn by inversion, as in the simulator."""
    sizes, shares = zip(*points, strict=True)
    return np.interp((np.arange(1_000_000) + 0.5) / 1_000_000, shares, sizes).mean()


def sized(distribution):
    return (
        "[topology]\nkind = 'dumbbell'\nrate = '100mbit'\nrtt = '1ms'\n[[flows]]\n"
        f"arrivals = {{ rate = 100, size = {{ distribution = {distribution}, mean = '20kB' }} }}"
    ).replace(", mean = '20kB'", "" if "pareto" not in distribution else ", mean = '20kB'")


def test_a_simulation_draws_measured_sizes():
    results = run(loads("duration = '20s'\n" + sized("'hadoop'")), jobs=1)
    sizes = [row["size_bytes"] for row in results.table("flows").to_pylist()]
    small = sum(size <= 1_000 for size in sizes) / len(sizes)
    assert len(sizes) > 1_500 and small == pytest.approx(0.6, abs=0.05)


def test_a_plan_with_a_wrong_distribution_is_refused():
    plan = resolve(loads(sized("'hadoop'")))
    plan["flows"][0]["app"]["size"]["points"][-1] = (10_000_000.0, 0.9)
    with pytest.raises(ScenarioError, match="rising shares from 0 to 1"):
        Simulator().check(plan)


def test_all_seeds_and_shards_have_the_pairs_of_the_first_seed(tmp_path):
    scenario = loads("duration = '1ms'\n" + TREE + "pattern = 'permutation'")
    whole = run(scenario, seeds=4, jobs=1).table("flows").to_pylist()
    names = {row["name"] for row in whole if row["run"] == 0}
    assert len(names) == 16
    assert {row["name"] for row in whole} == names
    part = run(scenario, seeds=4, jobs=1, shard=(2, 2)).table("flows").to_pylist()
    assert {row["name"] for row in part} == names


def test_too_many_pairs_are_refused_before_they_are_made():
    with pytest.raises(
        ScenarioError, match=r"flows\.0: found 67100672 pairs of hosts, expected at most 100000"
    ):
        pairs("pattern = 'all-to-all'", head=TREE.replace("k = 4", "k = 32"))


def test_few_arrivals_do_not_mix_flows_of_seeds_in_the_summary():
    """The number of flows of `web` depends on the seed, and so does the index of the flow `bulk`."""
    text = (
        "duration = '2s'\n[topology]\nkind = 'dumbbell'\nrate = '10mbit'\nrtt = '20ms'\n"
        "[[flows]]\nname = 'web'\narrivals = { rate = 2, size = '5kB' }\n"
        "[[flows]]\nname = 'bulk'\ncc = 'reno'\n"
    )
    results = run(loads(text), seeds=4, jobs=1)
    runs = [row["run"] for row in results.table("flows").to_pylist() if row["source"] == "web"]
    assert len({runs.count(run) for run in set(runs)}) > 1
    (bulk,) = [row for row in summary.flows(results) if row.name == "bulk"]
    assert len(bulk.by_seed["goodput_bps"]) == 4
    assert min(bulk.by_seed["goodput_bps"].values()) > 5e6
