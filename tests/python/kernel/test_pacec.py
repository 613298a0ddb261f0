"""PACEC on this machine's kernel: agents, Open vSwitch, the controller, and stock TCP with BRF's sender."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from narrows import sweep
from narrows.backends.kernel.agents import agents
from narrows.backends.kernel.control import check_kinds, config, known
from narrows.backends.kernel.layout import lay_out
from narrows.errors import ScenarioError
from narrows.results.compare import compare
from narrows.scenario.load import load, loads
from narrows.scenario.resolve import resolve

SCENARIOS = Path(__file__).parents[3] / "scenarios"
LINE = """
duration = "8s"
warmup = "3s"
[[links]]
between = ["a", "r1"]
rate = "1gbit"
[[links]]
between = ["b", "r1"]
rate = "1gbit"
[[links]]
name = "one"
between = ["r1", "r2"]
rate = "40mbit"
delay = "5ms"
queue = "200p"
[[links]]
between = ["r2", "b-end"]
rate = "1gbit"
[[links]]
name = "two"
between = ["r2", "r3"]
rate = "10mbit"
delay = "5ms"
queue = "200p"
[[links]]
between = ["r3", "a-end"]
rate = "1gbit"
[[flows]]
name = "long"
from = "a"
to = "a-end"
cc = "brf"
[[flows]]
name = "short"
from = "b"
to = "b-end"
cc = "brf"
[[controllers]]
kind = "pacec"
link = "one"
params = { signal = "in-band" }
[[controllers]]
kind = "pacec"
link = "two"
params = { signal = "in-band", edge = false }
[sdn]
[kernel]
forwarding = "ovs"
"""


def test_ports_where_no_flow_begins_have_no_agent():
    plan = resolve(loads(LINE))
    layout = lay_out(plan, "ovs")
    (switch,) = [agent for agent in agents(plan, layout, "nrw-1-1-") if agent.role == "switch"]
    assert [plan["links"][link]["name"] for link in switch.links.values()] == ["one"]
    assert switch.config["ports"][0]["params"] == {"signal": "in-band"}
    assert known(plan, layout).agents == {f"n{plan['nodes'].index('r1')}"}
    counted = {port["port"]: port["counted"] for port in config(plan, layout, "nrw-1-1-")["ports"]}
    number = next(i for i, link in enumerate(plan["links"]) if link["name"] == "two")
    assert [port for port, yes in counted.items() if yes] == [
        f"{plan['nodes'].index('r2') + 1:#x}:{number + 1}"
    ]


def placed(plan, forwarding):
    check_kinds(plan, forwarding)
    return agents(plan, lay_out(plan, forwarding), "nrw-1-1-")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            '"in-band" }',
            '"out-of-band" }',
            "found 'out-of-band', which stock hosts do not know, expected 'in-band'",
        ),
        ('forwarding = "ovs"', 'forwarding = "route"', "found 'route', expected 'ovs': 'pacec' has to know"),
    ],
)
def test_what_real_switches_cannot_do_is_said(old, new, complaint):
    plan = resolve(loads(LINE.replace(old, new)))
    with pytest.raises(ScenarioError, match=complaint):
        placed(plan, plan["kernel"]["forwarding"])


@pytest.fixture
def backend():
    from narrows.backends.kernel.backend import Kernel

    return Kernel()


@pytest.fixture
def ovs():
    if shutil.which("ovs-vswitchd") is None:
        pytest.skip("found no ovs-vswitchd: install openvswitch-switch")


def as_simulated(scenario, backend, folder, agents_up, switches_up):
    real = sweep.run(scenario, backend=backend, out=folder)
    sound = real.soundness["0"]["sound"]
    log = (folder / "logs" / "0" / "controller.log").read_text()
    assert "ERROR" not in log and "Traceback" not in log and "refused" not in log, log
    assert (log.count("agent-up:"), log.count("switch-up:")) == (agents_up, switches_up)
    for pair in compare(sweep.run(scenario), real).pairs:
        if (pair.entity, pair.figure) == ("flow", "goodput_bps"):
            print(f"{pair.name}: simulated {pair.a / 1e6:.2f}, kernel {pair.b / 1e6:.2f} Mbit/s, {sound=}")
            if sound:
                assert abs(pair.difference) < 0.1, pair.name
    if sound:
        assert all(link["dropped_packets"] == 0 for link in real.links.to_pylist())


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("agent", "tidy", "ovs")
def test_max_min_shares_over_two_links_are_as_simulated(backend, tmp_path):
    as_simulated(load(SCENARIOS / "pacec-below-ovs.toml"), backend, tmp_path / "out", 2, 3)


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("agent", "tidy", "ovs")
def test_a_link_that_is_only_counted_is_shared_as_simulated(backend, tmp_path):
    as_simulated(loads(LINE), backend, tmp_path / "out", 1, 3)
