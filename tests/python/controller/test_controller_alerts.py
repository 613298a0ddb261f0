"""The begin and the end of alerts, and the limit on the number of alerts."""

from __future__ import annotations

import json

import pytest
from fake_agent import flow as fake_flow
from fake_agent import flow_list
from hypothesis import given
from hypothesis import strategies as st
from narrows._native import parse_body
from narrows.controller.alerts import (
    ACTIVE_MAX,
    AGENTS_MAX,
    FORGET_NS,
    AgentRule,
    Alerts,
    FlowRule,
    Key,
    QueueRule,
    Rules,
)
from narrows.controller.sample import PortSample, Sample

SECOND = 1_000_000_000
QUEUE = Rules(queue=QueueRule(above_ns=10_000_000, for_ns=5 * SECOND))
AGENT = Rules(agent=AgentRule(silent_ns=5 * SECOND, expected=("s9",)))
FLOW = Rules(flow=FlowRule(below=0.5, for_ns=5 * SECOND))


def flow(port, rate, allocation=1_000_000):
    (listed,) = parse_body(json.dumps(flow_list(fake_flow(port, rate, allocation)))).flows
    return listed


def port(queue_ms=0.0, flows=(), interface="eth1", agent="a"):
    return PortSample(
        id=f"{agent}/{interface}",
        agent=agent,
        interface=interface,
        at=None,
        capacity_bps=8_000_000_000,
        tx_bps=None,
        rx_bps=None,
        queued_bytes=round(queue_ms * 1_000_000),
        flows=tuple(flows),
    )


def run(alerts, samples, first=0):
    """Feeds one sample per second. Returns each change with its second."""
    changes = []
    for second, sample in enumerate(samples, first):
        found = sample if isinstance(sample, Sample) else Sample((sample,), {})
        changes += [(second, alert.ends_s is None) for alert in alerts.check(second * SECOND, second, found)]
    return changes


def test_a_queue_above_its_threshold_for_long_enough_is_an_alert_until_it_is_gone_as_long():
    alerts = Alerts(0, QUEUE)
    assert run(alerts, [port(12.0)] * 8 + [port(1.0)] * 10) == [(5, True), (12, False)]
    assert alerts.active == []


@pytest.mark.parametrize("queues", [[10.0] * 20, [12.0] * 5 + [1.0] + [12.0] * 5 + [1.0]])
def test_a_queue_at_the_threshold_or_for_a_shorter_time_is_none(queues):
    assert run(Alerts(0, QUEUE), [port(ms) for ms in queues]) == []


def test_a_queue_that_varies_around_its_threshold_is_one_alert():
    assert run(Alerts(0, QUEUE), [port(12.0)] * 6 + [port(12.0 * (n % 2)) for n in range(200)]) == [(5, True)]


def test_an_alert_has_its_port_its_begin_and_its_values():
    alerts = Alerts(0, QUEUE)
    run(alerts, [port(12.0)] * 6 + [port(15.0)])
    (alert,) = alerts.active
    assert (alert.key, alert.severity, alert.since_s) == (Key("queue", "a", "eth1"), "warning", 5)
    assert alert.text == "the queue of eth1 of a is 15.0 ms long; the threshold is 10 ms"


def test_a_port_that_disappears_ends_its_alert():
    none = Sample((), {})
    assert run(Alerts(0, QUEUE), [port(12.0)] * 6 + [none] * 10)[-1] == (10, False)


def test_a_silent_agent_is_an_alert_until_its_next_message():
    alerts = Alerts(0, Rules(agent=AgentRule(5 * SECOND)))
    said = [0.0, 1.0, 3.0, 4.9, 5.0, 6.0, 0.2]
    changes = run(alerts, [Sample((), {"s1": silent_s}) for silent_s in said])
    assert changes == [(4, True), (6, False)]


def test_an_agent_that_disconnects_or_never_connects_is_an_alert():
    alerts = Alerts(0, AGENT)
    none, both = Sample((), {}), Sample((), {"s1": 0.0, "s9": 0.0})
    assert run(alerts, [none] * 7) == [(5, True)], "the expected agent s9 never connects"
    assert [alert.key.agent for alert in alerts.active] == ["s9"]
    assert run(alerts, [both, none, none, none], 7) == [(7, False)]
    assert run(alerts, [none] * 5, 11) == [(13, True), (13, True)]
    assert {alert.key.agent for alert in alerts.active} == {"s1", "s9"}
    later = FORGET_NS // SECOND + 100
    assert run(alerts, [none], later) == [(later, False)], "the alert about s1 ends"
    assert [alert.key.agent for alert in alerts.active] == ["s9"]


def test_slow_flows_of_a_port_are_one_alert_that_names_the_slowest():
    alerts = Alerts(0, FLOW)
    flows = [flow(1, 400_000), flow(2, 100_000), flow(3, 500_000), flow(4, 0, None)]
    assert run(alerts, [port(flows=flows)] * 8) == [(5, True)]
    (alert,) = alerts.active
    assert alert.text == (
        "2 flows at eth1 of a send less than 50 % of their allocation; the slowest is "
        "10.0.0.1:2 to 10.0.0.2:2 with 10 % of 8 Mbit/s"
    )
    run(alerts, [port(flows=flows[:1])], 8)
    (alert,) = alerts.active
    assert alert.text == (
        "a flow at eth1 of a sends less than 50 % of its allocation: "
        "10.0.0.1:1 to 10.0.0.2:2 with 40 % of 8 Mbit/s"
    )
    assert run(alerts, [port(flows=flows[2:])] * 10, 9) == [(13, False)]


def test_a_flow_that_is_slow_for_a_short_time_is_none():
    slow, fast = port(flows=[flow(1, 100_000)]), port(flows=[flow(1, 900_000)])
    assert run(Alerts(0, FLOW), ([slow] * 5 + [fast]) * 5) == []
    other = port(flows=[flow(2, 100_000)])
    assert run(Alerts(0, FLOW), ([slow] * 4 + [other] * 4) * 3) == [], (
        "the time is measured for each flow separately"
    )


def test_without_thresholds_there_is_nothing():
    assert run(Alerts(0, Rules()), [port(1000.0)] * 20) == []


def test_the_number_of_alerts_is_bounded():
    alerts = Alerts(0, QUEUE)
    ports = tuple(port(12.0, interface=f"eth{n}") for n in range(ACTIVE_MAX + 100))
    assert len(run(alerts, [Sample(ports, {})] * 7)) == len(alerts.active) == ACTIVE_MAX
    assert alerts.left_out == 100
    assert len(run(alerts, [Sample(ports[100:], {})] * 7, 7)) == 200, "100 alerts end, and 100 alerts begin"


def test_the_memory_of_agents_and_flows_is_bounded():
    alerts = Alerts(0, Rules(agent=AgentRule(10**6 * SECOND), flow=FlowRule(0.5, 10**6 * SECOND)))
    for second in range(4 * AGENTS_MAX):
        sample = Sample((port(flows=[flow(second % 60_000, 1)]),), {f"agent-{second}": 0.0})
        alerts.check(second * SECOND, second, sample)
    assert len(alerts._absent) <= AGENTS_MAX and len(alerts._slow) == 1


@given(st.lists(st.booleans(), max_size=80))
def test_begins_and_ends_alternate_and_follow_the_condition(above):
    alerts, is_active = Alerts(0, QUEUE), False
    for second, is_above in enumerate(above):
        for alert in alerts.check(second * SECOND, second, Sample((port(12.0 * is_above),), {})):
            assert (alert.ends_s is None) is not is_active
            is_active = not is_active
            recent = above[second - 5 : second + 1] if is_active else above[second - 4 : second + 1]
            assert set(recent) == {is_active}
