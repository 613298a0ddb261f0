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
            {"kernel.forwarding": "route", "rate_controllers.1.params.edge": False},
            "rate_controllers.1.params.edge: found false with 'route', expected true or kernel.forwarding",
        ),
    ],
)
def test_features_that_real_switches_lack_are_errors(changes, complaint):
    plan = resolve(load(SCENARIOS / "pacec-below-ovs.toml", changes))
    with pytest.raises(ScenarioError, match=complaint):
        placed(plan, plan["kernel"]["forwarding"])


def out_of_band(scenario):
    """The changes that make the rates of a scenario travel in messages."""
    number = len(scenario.raw()["rate_controllers"])
    signals = {f"rate_controllers.{n}.params.signal": "out-of-band" for n in range(number)}
    return signals | {f"flows.{n}.cc": "pacec" for n in range(len(scenario.flows))}


def test_sources_of_messages_have_a_sender_and_no_receiver():
    below = SCENARIOS / "pacec-below-ovs.toml"
    plan = resolve(load(below, out_of_band(load(below))))
    layout = lay_out(plan, "ovs")
    *switches, sender = agents(plan, layout, "nrw-1-1-")
    assert [agent.role for agent in switches] == ["switch", "switch"]
    assert {agent.config["ports"][0]["params"]["signal"] for agent in switches} == {"out-of-band"}
    assert (sender.role, sender.name, sender.config["sender"]["messages"]) == ("sender", "pacec", True)
    assert sender.config["sender"]["algorithm"] == "brfm1_1"


def test_the_signal_of_a_scenario_without_one_is_that_of_the_simulator():
    plan = resolve(load(SCENARIOS / "pacec-below-ovs.toml"))
    for controller in plan["rate_controllers"]:
        del controller["params"]["signal"]
    found = agents(plan, lay_out(plan, "ovs"), "nrw-1-1-")
    ports = [agent.config["ports"][0] for agent in found if agent.role == "switch"]
    assert [port["params"]["signal"] for port in ports] == ["out-of-band", "out-of-band"]


def test_without_openflow_the_controller_gets_the_paths():
    plan = resolve(load(SCENARIOS / "pacec-below-ovs.toml"))
    assert config(plan, lay_out(plan, "ovs"), "nrw-1-1-")["paths"] == []
    layout = lay_out(plan, "route")
    paths = config(plan, layout, "nrw-1-1-")["paths"]
    (r1, one), (r2, two) = [
        (f"n{plan['links'][c['link']]['from']}", f"l{c['link']}") for c in plan["rate_controllers"]
    ]
    expected = [[f"{r1}/{one}", f"{r2}/{two}"], [f"{r1}/{one}"], [f"{r2}/{two}"]]
    assert [path["ports"] for path in paths] == expected
    ends = layout.endpoints[layout.of_flow[0]]
    assert (paths[0]["from"], paths[0]["to"]) == (ends.source_address, ends.to_address)


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
def test_max_min_shares_by_messages_are_as_simulated(backend, tmp_path):
    below = SCENARIOS / "pacec-below-ovs.toml"
    as_simulated(load(below, out_of_band(load(below))), backend, tmp_path / "out", 2, 3)


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("agent", "tidy")
def test_max_min_shares_by_messages_below_routers_are_as_simulated(backend, tmp_path):
    below = SCENARIOS / "pacec-below-ovs.toml"
    changes = out_of_band(load(below)) | {"kernel.forwarding": "route"}
    as_simulated(load(below, changes), backend, tmp_path / "out", 2, 0)


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
