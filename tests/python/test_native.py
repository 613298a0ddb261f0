"""Tests that run the simulator."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows import sweep
from narrows.errors import ScenarioError
from narrows.results.exchange import PART
from narrows.results.results import Results
from narrows.results.tables import RUN_COUNTS, SCHEMAS
from narrows.scenario.load import load, loads
from narrows.scenario.resolve import resolve

translate = pytest.importorskip("narrows.backends.sim").translate
native = pytest.importorskip("narrows._native")
SCENARIOS = Path(__file__).parents[2] / "scenarios"
FULL = """
duration = "1s"
warmup = "WARMUP"
[topology]
kind = "dumbbell"
rate = "9.7mbit"
rtt = "20ms"
[[flows]]
transport = "udp"
rate = "20mbit"
"""
SHORT = """
duration = "2s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
loss = "0.1%"
[[flows]]
[[flows]]
cc = "reno"
"""


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            "etaa = 0.9",
            "rate_controllers.0.params.etaa: found an unknown key, expected a parameter of brf; "
            "nearest is 'eta'",
        ),
        ("eta = 7", "rate_controllers.0.params.eta: found 7, expected a number from 0.01 to 1"),
        (
            "mode = 'litteral'",
            "rate_controllers.0.params.mode: found 'litteral', expected resolved or literal",
        ),
        ("eta = 'x'", "rate_controllers.0.params.eta: found 'x', expected a number from 0.01 to 1"),
        ("eta = '101%'", "rate_controllers.0.params.eta: found '101%', expected a number from 0.01 to 1"),
        (
            "period_max = true",
            "rate_controllers.0.params.period_max: found true, expected a time from 10us to 1000000s",
        ),
        (
            "share = 'address'",
            'rate_controllers.0.params.share: found "address", expected flow, sender-address, ',
        ),
        (
            "share = 'sender-prefix/33'",
            'rate_controllers.0.params.share: found "sender-prefix/33", expected flow, sender-address, ',
        ),
        ("share = 'vlan'", 'rate_controllers.0.params.share: found "vlan", expected another share'),
        (
            "share = 'mark', mode = 'literal'",
            'rate_controllers.0.params.share: found "mark", expected flow if mode is literal',
        ),
        ("eta = 'x', mode = 'x'", "rate_controllers.0.params."),
        (
            "eta = 0.9, b_head = 'x', u_th = 1",
            "rate_controllers.0.params.b_head: found 'x', expected a number",
        ),
        ("eta = [1]", "rate_controllers.0.params.eta: found a list of 1, expected a number"),
        ("mode = 3", "rate_controllers.0.params.mode: found 3, expected resolved or literal"),
    ],
)
def test_errors_of_a_rate_controller_use_the_scenarios_keys(params, message):
    text = SHORT + f"[[rate_controllers]]\nkind = 'brf'\nlink = 'bottleneck'\nparams = {{ {params} }}"
    with pytest.raises(ScenarioError) as caught:
        sweep.run(loads(text, "x.toml"))
    assert str(caught.value).startswith(f"x.toml: {message}") and "`" not in str(caught.value)


def test_messages_of_the_simulator_are_kept():
    assert str(translate("flow a: no path from b to c")) == "flow a: no path from b to c"
    assert str(translate("links[3].at[0].rate: found 1")) == "links.3.at.0.rate: found 1"


def test_every_example_runs():
    for path in sorted(SCENARIOS.glob("*.toml")):
        whole = path.stem in ("changing-link", "bdr-on-linux", "rcp-on-linux")
        results = sweep.run(load(path, {} if whole else {"duration": "6s"}), seeds=1)
        assert sum(results.flows["delivered_bytes"].to_pylist()) > 10**6, path


def test_a_run_does_not_depend_on_other_runs_in_parallel(tmp_path):
    for name, jobs in (("a", 1), ("b", 3)):
        sweep.run(loads(SHORT), out=tmp_path / name, seeds=4, jobs=jobs)
    for path in sorted((tmp_path / "a").iterdir()):
        if path.name != "timing.csv":
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_a_full_link_counts_at_most_one_packet_beyond_its_capacity():
    """A link counts a packet when its transmission begins, so its throughput can exceed its capacity."""
    beyond = []
    for warmup in ("100ms", "100.3ms", "100.6ms", "100.9ms", "101.2ms"):
        results = sweep.run(loads(FULL.replace("WARMUP", warmup)))
        link = next(row for row in results.links.to_pylist() if row["name"] == "bottleneck")
        assert link["utilisation"] <= 1
        seconds = 1 - float(warmup.removesuffix("ms")) / 1000
        beyond.append((link["throughput_bps"] - link["capacity_bps"]) * seconds / 8)
    assert 0 < max(beyond) <= 1500
    assert min(beyond) >= -1500


def test_different_seeds_give_different_results():
    goodputs = sweep.run(loads(SHORT), seeds=3).flows["goodput_bps"].to_pylist()
    assert len(set(goodputs)) == 6


def test_the_columns_match_the_documented_tables():
    objects = '[[flows]]\ntransport = "quinn"\nrequests = { size = "1kB" }\n'
    plan = resolve(loads(SHORT + objects + "[probes]\ntraces = true\nacks = ['cubic']\n"))
    output = sweep.simulator().run(plan)
    for name, schema in SCHEMAS.items():
        assert ["run", *output[name]] == schema.names, name
    assert set(output["run"]) == set(RUN_COUNTS)


def test_a_clean_link_is_full_and_fair():
    results = sweep.run(
        loads(SHORT.replace('loss = "0.1%"', "").replace("2s", "20s").replace("reno", "cubic"))
    )
    links = results.links.to_pylist()
    assert links[0]["utilisation"] > 0.95
    flows = results.flows.to_pylist()
    # Payload is at most 1448 of 1500 bytes of each packet (MET-6).
    total = sum(flow["goodput_bps"] for flow in flows)
    assert 0.9 * 20e6 < total <= 1448 / 1500 * 20e6
    assert min(flow["rtt_mean_s"] for flow in flows) >= 0.02


@pytest.mark.parametrize(
    ("params", "message"),
    [("etta = 1", "etta"), ("eta = 7", "eta"), ("eta = '1x'", "eta|1x")],
)
def test_a_refused_scenario_gives_one_line_and_writes_nothing(tmp_path, params, message):
    text = (
        SHORT
        + f"[[rate_controllers]]\nkind = 'brf'\nlink = 'bottleneck'\n[rate_controllers.params]\n{params}"
    )
    with pytest.raises(ScenarioError, match=message) as caught:
        sweep.run(loads(text), out=tmp_path / "a")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "a").exists()


@given(
    st.integers(3, 9).flatmap(
        lambda n: st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 3)),
            min_size=2,
            max_size=16,
        )
    )
)
@settings(deadline=None, max_examples=200)
def test_routes_are_the_same_as_in_the_simulator(edges):
    """Python computes warm-ups and BDPs from its own routes. Packets take the routes of the simulator."""
    seen = set()
    text = ""
    for a, b, delay in edges:
        if a != b and frozenset((a, b)) not in seen:
            seen.add(frozenset((a, b)))
            text += f'[[links]]\nbetween = ["n{a}", "n{b}"]\nrate = "1mbit"\ndelay = "{delay}ms"\n'
    if not seen:
        return
    first = sorted(next(iter(seen)))
    text += f'[[flows]]\nfrom = "n{first[0]}"\nto = "n{first[1]}"\n'
    plan = resolve(loads(text))
    (flow,), nodes = plan["flows"], range(len(plan["nodes"]))
    pairs = [(source, to) for source in nodes for to in nodes if source != to]
    plan["flows"] = [flow | {"from": source, "to": to} for source, to in pairs]
    written = json.dumps(plan)
    for (source, to), path in zip(pairs, native.flow_paths(written), strict=True):
        route = None if path is None else [source, *(plan["links"][link]["to"] for link in path[0])]
        assert route == native.route(written, source, to)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_leaves_finished_runs_readable(tmp_path):
    (tmp_path / "long.toml").write_text(
        SHORT.replace('"2s"', '"1s"') + "[[sweep.case]]\nname='quick'\nset={}\n"
        "[[sweep.case]]\nname='slow'\nset={duration='100000s', 'probes.interval'='10s'}\n"
    )
    command = [sys.executable, "-m", "narrows.cli.main", "run", "long.toml", "--out", "out", "--jobs", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "out" / PART / "runs" / "0").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted: 1 of 2 runs finished, readable in out" in errors
    assert "Traceback" not in errors
    results = Results.read(tmp_path / "out")
    assert results.runs["case"].to_pylist() == ["quick"]
    assert len(results.flows) == 2
