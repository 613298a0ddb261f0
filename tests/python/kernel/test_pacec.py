"""PACEC on this machine's kernel: agents, Open vSwitch, the controller, and Linux's TCP with BRF's sender."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_lab import controller_log
from narrows import studies, sweep
from narrows.backends.kernel.agents import agents
from narrows.backends.kernel.control import check_kinds, config, known
from narrows.backends.kernel.layout import lay_out
from narrows.errors import ScenarioError
from narrows.results.compare import compare
from narrows.scenario.load import expand, load
from narrows.scenario.resolve import resolve

SCENARIOS = Path(__file__).parents[3] / "scenarios"
STUDY = Path(studies.__file__).parent / "library" / "pacec"


def counted_line():
    """The study's line of three switches, for 10 s. Only OpenFlow counts the bytes of the second link."""
    line = load(STUDY / "line.toml", {"duration": "10s", "warmup": "5s", "sweep.seeds": 1})
    return next(run.scenario for run in expand(line) if "pacec-counted" in run.factors.values())


def test_ports_where_no_flow_begins_have_no_agent():
    plan = resolve(counted_line())
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
    ("changes", "complaint"),
    [
        (
            {"rate_controllers.0.params": {"signal": "out-of-band"}},
            "found 'out-of-band', expected 'in-band': unmodified hosts support no other value",
        ),
        ({"kernel.forwarding": "route"}, "found 'route', expected 'ovs': 'pacec' must know"),
    ],
)
def test_features_that_real_switches_lack_are_errors(changes, complaint):
    plan = resolve(load(SCENARIOS / "pacec-below-ovs.toml", changes))
    with pytest.raises(ScenarioError, match=complaint):
        placed(plan, plan["kernel"]["forwarding"])


def as_simulated(scenario, backend, folder, agents_up, switches_up):
    """Run the scenario on the kernel, and compare its goodput with the simulation."""
    real = sweep.run(scenario, backend=backend, out=folder)
    sound = real.soundness["0"]["sound"]
    log = controller_log(folder)
    assert "refused" not in log, log
    assert (log.count("agent-up:"), log.count("switch-up:")) == (agents_up, switches_up)
    for pair in compare(sweep.run(scenario), real).pairs:
        if (pair.entity, pair.figure) == ("flow", "goodput_bps"):
            print(f"{pair.name}: simulated {pair.a / 1e6:.2f}, kernel {pair.b / 1e6:.2f} Mbit/s, {sound=}")
            if sound:
                assert abs(pair.difference) < 0.1, pair.name
    if sound:
        assert all(link["dropped_packets"] == 0 for link in real.links.to_pylist())
    return real.flows.to_pylist()


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("agent", "tidy", "ovs")
def test_max_min_shares_over_two_links_are_as_simulated(backend, tmp_path):
    as_simulated(load(SCENARIOS / "pacec-below-ovs.toml"), backend, tmp_path / "out", 2, 3)


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("agent", "tidy", "ovs")
def test_a_link_that_is_only_counted_is_shared_as_simulated(backend, tmp_path):
    as_simulated(counted_line(), backend, tmp_path / "out", 1, 3)


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("agent", "tidy", "ovs")
def test_two_flows_on_abilene_are_as_simulated(backend, tmp_path):
    scenario = load(SCENARIOS / "pacec-on-abilene.toml", {"duration": "15s"})
    flows = as_simulated(scenario, backend, tmp_path / "out", 1, 12)
    # B gets its rate even in a disturbed run.
    a, b = (flow["goodput_bps"] / 1e6 for flow in flows)
    assert b == pytest.approx(1.25, rel=0.1)
    assert 3.0 < a < 8.5
