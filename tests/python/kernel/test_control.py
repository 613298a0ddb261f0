"""Network, configuration and facts of the SDN controller, without a kernel."""

from __future__ import annotations

import tomllib

import pytest
import tomli_w
from narrows import extras
from narrows.backends.kernel import agents, control, features, ovs
from narrows.backends.kernel.commands import commands
from narrows.backends.kernel.layout import lay_out
from narrows.backends.kernel.shell import KernelError
from narrows.controller import config
from narrows.errors import ScenarioError

PREFIX = "nrw-12-3-"

CHAIN = """
duration = "5s"
[[links]]
between = ["a", "r1"]
rate = "1gbit"
[[links]]
name = "first"
between = ["r1", "r2"]
rate = "100mbit"
delay = "5ms"
[[links]]
between = ["r2", "b"]
rate = "1gbit"
[[flows]]
from = "a"
to = "b"
cc = "brf"
[[rate_controllers]]
kind = "brf"
link = "first"
params = { poll = "40ms" }
[sdn]
outages = [["1s", "2s"]]
"""
# The path over r3 has less delay but more hops. The simulator takes the path with the least delay, and the
# controller takes the path with the fewest hops.
DETOUR = """
[[links]]
name = "slow"
between = ["r1", "r3"]
rate = "100mbit"
delay = "1ms"
[[links]]
between = ["r3", "r2"]
rate = "100mbit"
delay = "1ms"
"""


def toml(made, layout):
    return tomli_w.dumps(control.config(made, layout, PREFIX))


def test_switches_with_agents_or_bridges_are_on_the_control_network(plan):
    made = plan(CHAIN)
    assert lay_out(made).control == [made["nodes"].index("r1")]
    assert lay_out(made, "ovs").control == [made["nodes"].index(name) for name in ("r1", "r2")]
    assert lay_out(plan(CHAIN.split("[sdn]", maxsplit=1)[0]), "ovs").control == []


def test_the_control_network_is_apart_from_the_measured_one(plan):
    layout = lay_out(plan(CHAIN), "ovs")
    todo = commands(layout, PREFIX)
    assert todo.namespaces[-1] == f"{PREFIX}sdn"
    pairs = [line for line in todo.links if " c" in line]
    assert pairs == [
        f"link add c{node} netns {PREFIX}sdn type veth peer name sdn0 netns {PREFIX}n{node}"
        for node in layout.control
    ]
    assert not any("192.168." in line for node in ("n0", "n3") for line in todo.addresses[PREFIX + node])
    routes = [
        line.split()[2]
        for lines in todo.addresses.values()
        for line in lines
        if line.startswith("route add 192")
    ]
    assert sorted(routes) == sorted(
        ["192.168.0.1/32"] * 2 + [f"192.168.0.{2 + n}/32" for n in layout.control]
    )


def test_the_controller_accepts_its_configuration(plan, tmp_path):
    made = plan(CHAIN)
    layout = lay_out(made, "ovs")
    file = tmp_path / "controller.toml"
    file.write_text(toml(made, layout))
    loaded = config.load(file, {})
    assert loaded.openflow.host == loaded.agents.host == "192.168.0.1"
    assert loaded.http.is_loopback
    assert loaded.detection.poll == 40_000_000, (
        "the period of the rate controller applies, because [sdn] has none"
    )
    assert loaded.forwarding.link_expire > made["duration"]
    first = next(i for i, link in enumerate(made["links"]) if link["name"] == "first")
    known = {entry.port: (entry.rate, entry.delay) for entry in loaded.ports}
    key = (control.datapath(made["links"][first]["from"]), control.port_number(first))
    assert known[key] == (100_000_000, 5_000_000)


def test_a_poll_of_the_scenario_is_the_controllers(plan):
    made = plan(CHAIN.replace("[sdn]", '[sdn]\npoll = "20ms"'))
    assert tomllib.loads(toml(made, lay_out(made)))["detection"] == {"poll": "20000000ns"}


def test_agents_know_the_controller_and_the_keys(plan):
    made = plan(CHAIN)
    switch = agents.agents(made, lay_out(made), PREFIX)[0]
    assert switch.config["controller"] == {
        "address": "192.168.0.1:6690",
        "key": f"/run/narrows/{PREFIX}/{switch.name}.key",
        "certificate": f"/run/narrows/{PREFIX}/{switch.name}.crt",
        "trusted": f"/run/narrows/{PREFIX}/controller.crt",
        "name": switch.name,
    }
    without = plan(CHAIN.split("[sdn]", maxsplit=1)[0])
    assert "controller" not in agents.agents(without, lay_out(without), PREFIX)[0].config


def test_bridges_are_the_controllers(plan):
    made = plan(CHAIN)
    layout = lay_out(made, "ovs")
    node = made["nodes"].index("r1")
    words = " ".join(ovs.configuration(layout, node))
    assert f"set-controller sw0 tcp:{control.CONTROLLER}:{control.OPENFLOW}" in words
    assert "fail_mode=secure" in words and "protocols=OpenFlow13" in words
    assert f"datapath-id={control.datapath(node):016x}" in words
    assert "connection-mode=out-of-band" in words
    assert ovs.flows(layout, node) == [], "the switch has only entries of the controller"


def test_the_controller_must_discover_the_whole_network(plan):
    made = plan(CHAIN)
    wanted = control.known(made, lay_out(made, "ovs"))
    assert (len(wanted.agents), len(wanted.links), len(wanted.hosts)) == (1, 1, 2)
    ((a, b),) = wanted.links
    link = [{"switch": f"{end[0]:016x}", "port": end[1]} for end in (a, b)]
    state = {
        "agents": [{"name": name} for name in wanted.agents],
        "topology": {
            "links": [{"a": link[0], "b": link[1]}],
            "hosts": [{"mac": mac} for mac in wanted.hosts],
        },
    }
    assert wanted.lacks(state) == ""
    nothing = {"agents": [], "topology": {"links": [], "hosts": []}}
    assert wanted.lacks(nothing) == f"agent {min(wanted.agents)} and 1 of 1 links and 2 of 2 hosts"
    routed = control.known(made, lay_out(made))
    assert (len(routed.agents), len(routed.links), len(routed.hosts)) == (1, 0, 0)


def test_paths_that_differ_from_the_controllers_are_refused(plan):
    made = plan(CHAIN)
    control.check_paths(made, lay_out(made, "ovs"))
    other = plan(CHAIN.replace("[[flows]]", DETOUR + "[[flows]]"))
    layout = lay_out(other, "ovs")
    assert len(layout.endpoints[0].forth) == 4, "the path of the plan crosses r3"
    with pytest.raises(ScenarioError, match=r"kernel.forwarding: .*at 'r1' the controller uses link 'first'"):
        control.check_paths(other, layout)


def test_missing_packages_are_an_error_in_one_line(monkeypatch):
    monkeypatch.setattr(extras, "missing", lambda extra: ["os_ken", "fastapi"])
    with pytest.raises(KernelError) as told:
        features.require(features.sdn)
    assert str(told.value) == (
        "found no packages of the controller (os_ken, fastapi), needed for scenarios with sdn, narrows "
        "controller; pip install 'narrows[controller]'"
    )
