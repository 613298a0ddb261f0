"""The controller with real Open vSwitch.

Without root, the tests are skipped. With NARROWS_REQUIRE_KERNEL=1, they fail instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ovs_lab as laboratory
import pytest
from ovs_lab import AGENTS, Lab, wait


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    laboratory.require()
    # The path of a Unix socket has at most 108 bytes, so it must not contain the test's name.
    lab = Lab(tmp_path_factory.mktemp("ovs"))
    config = lab.folder / "controller.toml"
    config.write_text('[alerts.agent]\nsilent = "2s"\nexpected = ["absent"]\n')
    lab.start_controller("--config", str(config))
    yield lab
    lab.close()


def links(lab):
    state = lab.get("topology")
    return (
        []
        if state is None
        else sorted((link["a"]["switch"][-1], link["b"]["switch"][-1]) for link in state["links"])
    )


def ports(lab):
    return {port["name"]: port for switch in lab.get("switches") for port in switch["ports"]}


TRIANGLE = [("1", "2"), ("1", "3"), ("2", "3")]


def test_the_network_is_found_and_its_hosts_are_connected(lab):
    wait(lambda: links(lab) == TRIANGLE, "three links")
    wait(lambda: lab.ping(1) == 1, "a first answer")
    assert lab.ping() == 5
    topology = lab.get("topology")
    found = {ip: host["at"]["switch"][-1] for host in topology["hosts"] for ip in host["ips"]}
    assert found["10.9.0.1"] == "1" and found["10.9.0.2"] == "2"
    assert ports(lab)["s1-h1"]["kind"] == "edge" and ports(lab)["s1-s2"]["kind"] == "trunk"


def test_loads_are_read(lab):
    lab.ping()
    wait(lambda: ports(lab)["s1-h1"]["load"] is not None, "a load")


def test_an_agent_is_seen(lab):
    mac = lab.mac("s1-s2")
    script = str(Path(__file__).with_name("fake_agent.py"))
    command = [sys.executable, script, "127.0.0.1", str(AGENTS), "box", "s1-s2", mac]
    lab.start(lab.net, *command, log="agent.log")
    wait(lambda: [agent["name"] for agent in lab.get("agents")] == ["box"], "the agent")
    wait(lambda: lab.get("congestion")[0]["reports"] > 2, "reports")
    state = lab.get("congestion")[0]
    assert state["at"] == {"switch": "0000000000000001", "port": ports(lab)["s1-s2"]["number"]}
    assert state["kind"] is None
    wait(
        lambda: ports(lab)["s1-s2"]["load"]["capacity_bps"] == 100_000_000, "the capacity that the agent told"
    )


def test_the_last_hour_the_metrics_and_an_alert_are_there(lab):
    own = f"{ports(lab)['s1-s2']['key']}"
    other = ports(lab)["s1-h1"]["key"]
    assert own == "box/s1-s2" and other.startswith("0000000000000001:")
    lab.ping()

    def rates():
        found = lab.get(f"history?port={own}&port={other}") or []
        return len(found) == 2 and all(any(series["tx_bps"]) for series in found)

    wait(rates, "rates of both ports")
    assert any(value == 0 for value in lab.get(f"history?port={own}")[0]["queue_s"])
    url = f"http://127.0.0.1:{laboratory.HTTP}/metrics"
    script = f"import urllib.request as u; print(u.urlopen({url!r}, timeout=5).read().decode())"
    text = lab.inside(lab.net, sys.executable, "-c", script).stdout
    assert "narrows_controller_switches 3.0" in text
    labels = 'agent="box",interface="s1-s2",port="box/s1-s2"'
    assert f"narrows_controller_port_capacity_bytes_per_second{{{labels}}} 1.25e+07" in text
    wait(lambda: len(lab.get("alerts")["active"]) == 1, "the alert")
    (alert,) = lab.get("alerts")["active"]
    assert (alert["name"], alert["agent"]) == ("NarrowsAgentSilent", "absent")
    (event,) = [event for event in lab.get("events") if event["kind"] == "alert-critical"]
    assert event["text"].startswith("NarrowsAgentSilent: agent absent has not been connected for ")


def test_traffic_takes_another_path_when_a_link_is_cut(lab):
    lab.inside(lab.net, "ip", "link", "set", "s1-s2", "down")
    wait(lambda: links(lab) == TRIANGLE[1:], "the cut to be noticed")
    wait(lambda: lab.ping(1) == 1, "an answer over the other path")
    assert lab.ping() == 5
    lab.inside(lab.net, "ip", "link", "set", "s1-s2", "up")
    wait(lambda: links(lab) == TRIANGLE, "the link to be back")
    wait(lambda: lab.ping(1) == 1, "an answer over the first path")
    assert lab.ping() == 5


def test_traffic_continues_without_a_controller_and_with_a_new_one(lab):
    lab.kill_controller()
    assert lab.ping() == 5, "the switches keep their entries"
    lab.start_controller()
    # A new controller does not know the links yet, so it must not change the entries of switches.
    assert lab.ping() == 5
    wait(lambda: links(lab) == TRIANGLE, "the links to be found again")
    wait(lambda: not any(switch["held"] for switch in lab.get("switches")), "the entries to be compared")
    assert lab.ping() == 5
    hosts = {host["at"]["switch"][-1] for host in lab.get("topology")["hosts"]}
    assert hosts == {"1", "2"}, "hosts are known from the switches' entries"
    wait(lambda: [agent["name"] for agent in lab.get("agents")] == ["box"], "the agent to be back")


def test_a_restarted_switch_gets_its_entries_again(lab):
    lab.vsctl("del-controller", "s3")
    wait(lambda: len(lab.get("switches")) == 2, "the switch to disconnect")
    assert lab.ping() == 5
    lab.vsctl("set-controller", "s3", f"tcp:127.0.0.1:{laboratory.OPENFLOW}")
    wait(lambda: links(lab) == TRIANGLE, "the links to be found again")
    assert lab.ping() == 5


def test_the_log_has_no_error(lab):
    log = (lab.folder / "controller.log").read_text()
    assert "ERROR" not in log and "Traceback" not in log, log
