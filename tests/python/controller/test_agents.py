"""Agents and controller together, on real TCP stacks.

The tests need root, narrows-agent and Open vSwitch. Without them, the tests are skipped. With
NARROWS_REQUIRE_KERNEL=1, they fail instead. Tests that measure in real time are repeated if they fail
(`flaky`), because other work on the machine can disturb them.
"""

from __future__ import annotations

import signal
import time

import agents_lab
import pytest
from agents_lab import BOTTLENECK, RATE, Queue, below_ovs, received, send, start_switch
from ovs_lab import wait
from two_ways_lab import RECEIVER, two_ways


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    agents_lab.require()
    lab = below_ovs(tmp_path_factory.mktemp("ovs"))
    yield lab
    lab.close()


def port(lab):
    return next((entry for entry in lab.get("congestion") if entry["interface"] == BOTTLENECK), None)


def test_the_port_is_found_and_reports(lab):
    wait(lambda: port(lab)["reports"] > 5, "reports")
    state = lab.get("state")
    assert state["authenticated"]
    assert [(agent["name"], agent["ports"]) for agent in state["agents"]] == [("below-s1", [BOTTLENECK])]
    at = port(lab)["at"]
    (switch,) = [switch for switch in state["topology"]["switches"] if switch["id"] == at["switch"]]
    assert [known["name"] for known in switch["ports"] if known["number"] == at["port"]] == [BOTTLENECK]


def _busiest(lab):
    (link,) = lab.get("links")
    return max(link[way]["netcard_rate"] or 0 for way in ("a_to_b", "b_to_a"))


@pytest.mark.flaky(reruns=2)
def test_two_flows_share_the_link_and_are_reported(lab):
    senders = [send(lab, "h1", 5201, 8), send(lab, "h2", 5202, 8)]

    def shown():
        flows = [flow for flow in lab.get("flows") if flow["allocation_bps"]]
        return len(flows) == 2 and {flow["source"] for flow in flows} == {"10.9.0.1", "10.9.0.2"}

    with Queue(lab) as queue:
        wait(shown, "both flows with their rates", seconds=5)
        # The load combines OpenFlow's counters with the capacity that the agent reports (equation 5 of the
        # BRF paper).
        wait(lambda: _busiest(lab) > 0.3, "the link's load", seconds=5)
        rates = [received(sender)[0] for sender in senders]
    assert all(0.3 * RATE < rate < 0.52 * RATE for rate in rates), rates
    packets = queue.packets()
    assert sum(packets) / len(packets) < 20, packets


@pytest.mark.flaky(reruns=2)
def test_the_controller_detects_a_burst_which_then_drains(lab):
    # Restart the controller. Otherwise, it would merge new events of the port with events of the last minute.
    lab.kill_controller()
    lab.start_controller()
    wait(lambda: [agent["name"] for agent in lab.get("agents")] == ["below-s1"], "the agent to be back")
    before = max((event["id"] for event in lab.get("events")), default=0)
    with Queue(lab) as queue:
        senders = [send(lab, "h1", 5201, 4, streams=10), send(lab, "h2", 5202, 4, streams=10)]
        rates = [received(sender)[0] for sender in senders]
    news = [event["kind"] for event in lab.get(f"events?after={before}")]
    # `news` can also have events of switches that connect late.
    states = [kind for kind in news if kind in ("congestion", "clear")]
    assert "congestion" in states and states[-1] == "clear", news
    assert "congestion-" in lab.agents.log("s")
    packets = queue.packets()
    late = packets[len(packets) // 2 :]
    print("queue in packets, every 20 ms:", packets)
    assert max(packets) > 5, "there was a burst"
    assert sum(late) / len(late) < 40, late
    assert sum(rates) > 0.6 * RATE, rates


@pytest.mark.flaky(reruns=2)
def test_flows_survive_the_death_of_controller_and_agent(lab):
    senders = [send(lab, "h1", 5201, 10), send(lab, "h2", 5202, 10)]
    time.sleep(1.5)
    lab.kill_controller()
    time.sleep(1)
    lab.start_controller()
    wait(lambda: [agent["name"] for agent in lab.get("agents")] == ["below-s1"], "the agent to be back")
    lab.switch.send_signal(signal.SIGKILL)
    lab.switch.wait()
    wait(lambda: lab.get("agents") == [], "its end to be seen")
    start_switch(lab)
    wait(lambda: lab.get("agents"), "the next agent")
    rates = [received(sender)[0] for sender in senders]
    assert all(rate > 0.15 * RATE for rate in rates), rates
    kinds = [event["kind"] for event in lab.get("events")]
    assert kinds.count("agent-up") == 2 and kinds.count("agent-down") == 1
    assert "Traceback" not in (lab.folder / "controller.log").read_text()


@pytest.mark.flaky(reruns=2)
def test_a_rate_reaches_the_switch_that_sees_the_acks(tmp_path):
    """BRF-63: data crosses one switch, and ACKs cross another switch."""
    agents_lab.require()
    lab = two_ways(tmp_path)
    try:
        sender = send(lab, "h1", 5201, 6, to=RECEIVER)

        def stamped():
            (shown,) = lab.agents.status("b")["ports"]
            return dict(shown["counters"])["inserted"] + dict(shown["counters"])["stamped"] > 100

        wait(stamped, "ACKs with the advertised rate", seconds=6)
        (shown,) = lab.agents.status("a")["ports"]
        assert sum(leaf["packets"] for leaf in shown["leaves"][:2]) > 1000, (
            "the flow's data crosses this switch"
        )
        assert dict(shown["counters"])["inserted"] == 0, "no ACK of the flow crosses this switch"
        # BRF paces the sender at 97 % of the link's rate, so no queue forms. When this test ran with CUBIC,
        # the queueing delay was 60 ms.
        queued = [leaf["queued_packets"] for leaf in shown["leaves"][:2]]
        assert sum(queued) < 100, queued
        rate, _ = received(sender)
        assert 0.3 * RATE < rate < RATE, rate
    finally:
        lab.close()
