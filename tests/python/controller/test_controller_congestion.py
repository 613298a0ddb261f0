"""The controller's congestion detector, and its messages to agents."""

from __future__ import annotations

import json

import pytest
from fake_agent import advertisement, port_info, report
from fake_switches import SECOND
from narrows import _native
from narrows.controller import agents as agents_module
from narrows.controller.domain import Domain, Params
from narrows.controller.messages import (
    AgentDown,
    AgentMessage,
    AgentUp,
    Counters,
    CountersRead,
    Note,
    PortDesc,
    SendToAgent,
    SwitchUp,
)

MS = 1_000_000


class Agents:
    def __init__(self, *names, ports=(1, 2)):
        self.now = SECOND
        self.domain = Domain(self.now, Params())
        self.out = []
        for name in names:
            self.event(AgentUp(name, "127.0.0.1:1"))
            self.say(name, {"type": "ports", "ports": [port_info(n, f"eth{n}") for n in ports]})

    def event(self, event):
        self.out += self.domain.handle(self.now, event)

    def say(self, name, body):
        self.event(AgentMessage(name, json.dumps(body)))

    def take(self, kind):
        said = [(e.agent, json.loads(e.body)) for e in self.out if isinstance(e, SendToAgent)]
        self.out = [e for e in self.out if isinstance(e, Note)]
        return [(agent, body) for agent, body in said if body["type"] == kind]


def test_ports_are_polled_at_once_and_one_poll_serves_an_agent():
    agents = Agents("a", "b")
    assert agents.take("poll") == [("a", {"type": "poll"}), ("b", {"type": "poll"})]
    agents.now += 100 * MS
    assert agents.domain.next_timer_ns() <= agents.now
    agents.out += agents.domain.tick(agents.now)
    assert agents.take("poll") == [("a", {"type": "poll"}), ("b", {"type": "poll"})]


def test_a_standing_queue_is_reported_to_its_port_until_it_has_drained():
    agents = Agents("a", "b")
    agents.take("poll")
    told = []
    for queued in [0, 100_000, 90_000, 0, 0]:
        agents.now += 20 * MS
        agents.say("b", report(2, agents.now, queued))
        told.append(agents.take("congestion"))
    queue = [("b", {"type": "congestion", "kind": "queue", "port": 2})]
    clear = [("b", {"type": "congestion", "kind": None, "port": 2})]
    assert told == [[], queue, queue, clear, []]
    noted = [e.kind for e in agents.out if isinstance(e, Note)]
    assert noted[-2:] == ["congestion", "clear"]


def test_advertisements_go_to_the_other_agents_with_the_domains_number():
    agents = Agents("a", "b", "c")
    agents.take("poll")
    agents.say("b", advertisement(port=2))
    relayed = agents.take("flow-advertisement")
    assert [name for name, _ in relayed] == ["a", "c"]
    port = agents.domain.agents.by_name["b"].ports[2].id
    assert all(body == advertisement(port=port) for _, body in relayed)


def test_a_disconnected_agent_is_not_polled_and_keeps_its_numbers():
    agents = Agents("a", "b")
    before = agents.domain.agents.by_name["a"].ports[1].id
    agents.take("poll")
    agents.event(AgentDown("a", "x"))
    agents.now += SECOND
    agents.out += agents.domain.tick(agents.now)
    assert agents.take("poll") == [("b", {"type": "poll"})]
    agents.event(AgentUp("a", "127.0.0.1:2"))
    agents.say("a", {"type": "ports", "ports": [port_info(1)]})
    assert agents.domain.agents.by_name["a"].ports[1].id == before


def test_an_agent_that_always_invents_ports_fills_no_memory(monkeypatch):
    monkeypatch.setattr(agents_module, "NUMBERS_MAX", 10)
    agents = Agents("a", "b", ports=(1,))
    of = agents.domain.agents
    kept = of.by_name["b"].ports[1].id
    for number in range(2, 100):
        agents.say("a", {"type": "ports", "ports": [port_info(number)]})
    assert len(of._numbers._of) == 10 and len(of._owners) == 2
    agents.take("poll")
    agents.now += SECOND
    agents.out += agents.domain.tick(agents.now)
    assert sorted(name for name, _ in agents.take("poll")) == ["a", "b"]
    agents.say("b", {"type": "ports", "ports": [port_info(1)]})
    numbers = [port.id for _, port in of.ports()]
    assert len(set(numbers)) == 2 and kept not in numbers, "a forgotten number is not used again"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "{}",
        '{"type":"poll"}',
        '{"type":"ports","ports":[{}]}',
        '{"type":"report","port":9}',
        '{"type":"report","port":1}',
        json.dumps({**report(1), "capacity": -1}),
        json.dumps({**report(1), "at": 2**70}),
        json.dumps({**advertisement(1), "key": {}}),
        json.dumps({"type": "flows", "port": 1, "flows": [{}]}),
        json.dumps({"type": "ports", "ports": [port_info() | {"thresholds": {}}]}),
        json.dumps({"type": "ports", "ports": [port_info() | {"thresholds": {"\x1b[2J\x7f": 1}}]}),
        json.dumps({"type": "ports", "ports": [port_info(1, "eth1"), port_info(2, "eth1")]}),
        json.dumps({"type": "ports", "ports": [port_info(1, "b/eth1")]}),
        json.dumps({"type": "ports", "ports": [port_info(1, "")]}),
        "[" * 100_000,
    ],
)
def test_invalid_bodies_are_refused_logged_once_and_have_no_effect(body):
    agents = Agents("a")
    agents.out.clear()
    for _ in range(2):
        agents.event(AgentMessage("a", body))
    assert [e.kind for e in agents.out if isinstance(e, Note)] == ["agent-refused"]
    assert agents.out[0].text.isprintable()
    assert agents.domain.agents.by_name["a"].refused == 2
    agents.say("a", {"type": "ports", "ports": [port_info()]})
    assert agents.take("poll")


def test_loads_and_eq_5_follow_the_counters():
    agents = Agents("a", ports=(1,))
    desc = PortDesc(4, "eth1", "02:00:00:00:00:01", True, 10_000_000_000)
    agents.event(SwitchUp(7, (desc,)))
    assert agents.domain.capacity_bps((7, 4)) == 100_000_000, (
        "the agent's port and the switch's port are the same"
    )
    for packets in (1000, 1500):
        agents.now += SECOND // 10
        counters = Counters(0, packets, 0, packets * 1514, 0, 0)
        agents.event(CountersRead(7, {4: counters}))
    load = agents.domain.loads.by_port[(7, 4)]
    assert load.tx_bps == 500 * 1514 * 8 / 0.1
    assert load.netcard_rate == pytest.approx(500 * 1500 * 8 / (0.1 * 100e6))
    agents.now += SECOND
    agents.event(CountersRead(7, {4: Counters(0, 3, 0, 9, 0, 0)}))
    assert (7, 4) not in agents.domain.loads.by_port, "counters that decreased give no load"


def test_eq_5_equals_the_detectors():
    assert _native.netcard_rate(8170, 1500, 10**9, 12_500_000) == pytest.approx(8170 * 1500 / 12_500_000)
    assert _native.netcard_rate(1, 1500, 10**9, 0) == 0
