"""PACEC in the controller: links, the paths of flows, and messages to agents."""

from __future__ import annotations

import json

import pytest
from fake_agent import advertisement, port_info, report
from fake_switches import SECOND, Network
from narrows.controller import view
from narrows.controller.domain import Params, PortParams
from narrows.controller.messages import (
    AgentDown,
    AgentMessage,
    AgentUp,
    AskCounters,
    Counters,
    CountersRead,
    FrameSeen,
    Note,
    SendToAgent,
)

MS = 1_000_000
MBIT = 125_000
A, B, C = (f"0a:00:00:00:00:0{n}" for n in (1, 2, 3))
IPS = {A: "10.0.0.1", B: "10.0.0.2", C: "10.0.0.3"}
HOSTS = {A: (1, 8), B: (2, 8), C: (3, 8)}
LINE = [((1, 2), (2, 1)), ((2, 2), (3, 1))]
FIRST, SECOND_LINK = 40 * MBIT, 10 * MBIT


def key(source, to, port=40_000):
    return {"saddr": IPS[source], "daddr": IPS[to], "sport": port, "dport": 80, "proto": "tcp"}


def change(flow=None):
    return {"key": flow or key(A, C), "begun": True, "demand": None}


def pacec_port(number=0, at="s1-2", mac="02:00:00:00:01:02", **params):
    info = port_info(number, at, mac, FIRST)
    del info["thresholds"]
    return info | {"rate_controller": "pacec", "params": {"signal": "in-band", **params}}


class Line(Network):
    """Three switches in a line. The first switch has an agent."""

    reporting = {0: FIRST}
    """Capacities of the ports that report."""

    def __init__(self, told=SECOND_LINK):
        ports = {(2, 2): PortParams(rate_bps=8 * told)} if told else {}
        super().__init__(LINE, HOSTS, Params(hold_ns=0, ports=ports))
        for dpid in self.switches:
            self.connect(dpid)
        self.run(4)
        for mac, end in HOSTS.items():
            self.event(FrameSeen(*end, mac, IPS[mac]))
        self.flows, self.granted = [], {}
        self.sent = {(1, 2): 0, (2, 2): 0}
        self.asked = 0

    def join(self, *infos):
        self.event(AgentUp("edge", "127.0.0.1:1"))
        self.say({"type": "ports", "ports": list(infos or [pacec_port()])})

    def say(self, body):
        self.event(AgentMessage("edge", json.dumps(body)))

    def change(self, flow, begun=True, demand=None, port=0):
        self.flows = [f for f in self.flows if f != flow] + ([flow] if begun else [])
        changes = [{"key": flow, "begun": begun, "demand": demand}]
        self.say({"type": "flow-changes", "port": port, "changes": changes})

    def work(self, seconds, background=0):
        """Flows send for some time.

        `background` is the rate of other traffic on the second link, in bytes/s.
        """
        for _ in range(int(seconds * 100)):
            self.run(0.01)
            for flow in self.flows:
                rate = self.granted.get(flow["daddr"], 0)
                self.sent[1, 2] += rate // 100
                self.sent[2, 2] += rate // 100 if flow["daddr"] == IPS[C] else 0
            self.sent[2, 2] += background // 100
            for port, capacity in self.reporting.items():
                self.report(port, capacity)
            for flow in self.flows:
                if self.now % SECOND < 10 * MS:
                    self.change(flow)
            self.listen()

    def report(self, port, capacity):
        self.say(
            {
                "type": "report",
                "port": port,
                "at": self.now,
                "capacity": capacity,
                "rated_share": capacity,
                "rated_arrived": self.sent[1, 2],
                "rated_departed": self.sent[1, 2],
                "departed": self.sent[1, 2],
                "departed_packets": 0,
                "rated_queued": 0,
                "rated_packets": [0, 1000],
                "all_packets": [0, 1000],
                "period": 10 * MS,
            }
        )

    def listen(self):
        notes, self.notes = self.notes, []
        for effect in notes:
            match effect:
                case AskCounters(2):
                    self.asked += 1
                    packets = self.sent[2, 2] // 1500
                    counters = Counters(0, packets, 0, self.sent[2, 2] + 14 * packets, 0, 0, self.now)
                    self.event(CountersRead(2, {2: counters}))
                case SendToAgent("edge", body) if json.loads(body)["type"] == "grants":
                    assert json.loads(body)["port"] == 0
                    self.granted |= {flow["daddr"]: rate for flow, rate in json.loads(body)["flows"]}
                case SendToAgent() | Note():
                    self.notes.append(effect)

    def bodies(self):
        """The bodies of all messages to agents in `notes`."""
        return [json.loads(effect.body) for effect in self.notes if isinstance(effect, SendToAgent)]


def mbit(rate):
    return rate / MBIT


def test_a_link_without_an_agent_limits_the_flows_that_cross_it():
    line = Line()
    line.join()
    line.change(key(A, C))
    line.change(key(A, B))
    line.work(4)
    rates = {to: mbit(line.granted[IPS[to]]) for to in (B, C)}
    assert rates == {C: pytest.approx(9.8, rel=0.02), B: pytest.approx(29.4, rel=0.02)}
    assert 70 <= line.asked <= 90, "the counters are read once in each control period of 50 ms"
    (state,) = view.congestion(line.domain, line.now)
    assert (state.rate_controller, state.kind) == ("pacec", None)
    assert state.available_bps == pytest.approx(39.2e6, rel=0.01)
    assert state.utilisation == pytest.approx(0.98, abs=0.02)
    line.change(key(A, C), begun=False)
    line.work(1)
    assert mbit(line.granted[IPS[B]]) == pytest.approx(39.2, rel=0.02), (
        "the flow to B gets the rate that the other flow leaves"
    )


def test_other_traffic_keeps_its_rate():
    line = Line()
    line.join()
    line.change(key(A, C))
    line.work(4, background=4 * MBIT)
    assert mbit(line.granted[IPS[C]]) == pytest.approx(5.8, rel=0.03)


def test_a_port_without_rate_and_agent_is_not_read():
    line = Line(told=None)
    line.join()
    line.change(key(A, C))
    line.listen()
    line.asked = 0
    line.work(1)
    assert line.asked <= 1, "the counters are read only once a second, for the page"
    assert mbit(line.granted[IPS[C]]) == pytest.approx(39.2, rel=0.01)
    line.event(AgentDown("edge", "gone"))
    line.domain.params.ports[2, 2] = PortParams(rate_bps=8 * SECOND_LINK)
    line.notes.clear()
    line.run(1)
    asked = [effect for effect in line.notes if effect == AskCounters(2)]
    assert len(asked) == 1, "no agent needs the counters"


def test_a_flow_with_an_unknown_end_gets_no_rate():
    line = Line()
    line.join()
    stranger = key(A, C) | {"daddr": "10.9.9.9"}
    line.change(stranger)
    line.work(0.5)
    assert line.granted == {"10.9.9.9": 2**64 - 1}, "the flow has no limit"
    line.event(FrameSeen(3, 8, C, "10.9.9.9"))
    line.change(stranger)
    line.work(2)
    assert mbit(line.granted["10.9.9.9"]) == pytest.approx(9.8, rel=0.02)


def test_the_path_follows_a_host_that_moves():
    line = Line()
    line.join()
    line.change(key(A, C))
    line.work(2)
    assert mbit(line.granted[IPS[C]]) == pytest.approx(9.8, rel=0.02)
    line.event(FrameSeen(2, 8, C, IPS[C]))
    line.work(2)
    assert mbit(line.granted[IPS[C]]) == pytest.approx(39.2, rel=0.02), (
        "within a second it is announced again"
    )


def test_a_reconnected_agent_is_asked_for_its_flows():
    line = Line()
    line.join()
    line.change(key(A, C))
    line.work(1)
    line.event(AgentDown("edge", "gone"))
    line.run(1)
    assert line.domain.path_rates.flows() == 0
    line.notes.clear()
    line.flows = []
    line.join()
    line.work(0.03)
    assert "poll" in [body["type"] for body in line.bodies()]


def test_repeated_port_announcements_have_no_effect():
    """Repeated announcements must not restart the rate law."""
    line = Line()
    line.join()
    line.change(key(A, C))
    for _ in range(40):
        line.work(0.05)
        line.event(AgentUp("other", "127.0.0.1:2"))
        ports = [port_info(3, "elsewhere", "02:00:00:00:09:09")]
        line.event(AgentMessage("other", json.dumps({"type": "ports", "ports": ports})))
    assert mbit(line.granted[IPS[C]]) == pytest.approx(9.8, rel=0.02)


def test_addresses_are_kept_while_a_switch_reconnects():
    line = Line()
    line.join()
    line.change(key(A, C))
    line.disconnect(3)
    line.run(1)
    line.connect(3)
    line.run(6)
    assert line.domain.hosts.find(IPS[C]).at == (3, 8)


def test_a_new_controller_learns_addresses_from_the_next_packets():
    line = Line()
    for dpid in line.new_controller():
        line.connect(dpid)
    line.run(6)
    assert [host.ips for host in line.domain.hosts.by_mac.values()] == [{}] * 3
    rules = [rule for rule in line.rules[3].values() if rule.match.eth_src == C and rule.to_controller]
    assert {rule.match.eth_type for rule in rules} == {0x0800, 0x86DD}
    line.event(FrameSeen(3, 8, C, IPS[C]))
    rules = [rule for rule in line.rules[3].values() if rule.match.eth_src == C and rule.to_controller]
    assert (rules, line.domain.hosts.find(IPS[C]).mac) == ([], C)


def test_a_port_with_another_rate_controller_counts_as_one_without_an_agent():
    line = Line(told=None)
    other = port_info(7, "s2-2", "02:00:00:00:02:02", SECOND_LINK)
    line.event(AgentUp("inner", "127.0.0.1:2"))
    line.event(AgentMessage("inner", json.dumps({"type": "ports", "ports": [other]})))
    line.join()
    line.change(key(A, C))
    line.work(3)
    assert mbit(line.granted[IPS[C]]) == pytest.approx(9.8, rel=0.02)


def test_grants_for_thousands_of_flows_are_split():
    line = Line()
    line.join()
    flows = [key(A, B, port) for port in range(1, 3_501)]
    for at in range(0, len(flows), 1000):
        changes = [{"key": flow, "begun": True, "demand": None} for flow in flows[at : at + 1000]]
        line.say({"type": "flow-changes", "port": 0, "changes": changes})
    line.work(0.1)
    line.notes.clear()
    line.listen = lambda: None
    line.work(0.3)
    grants = [body for body in line.bodies() if body["type"] == "grants"]
    assert max(len(body["flows"]) for body in grants) == 1000
    told = {flow["sport"] for body in grants for flow, _ in body["flows"]}
    assert told == set(range(1, 3_501))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"type": "flow-changes", "port": 0, "changes": [{"key": 1}]}, "changes: "),
        (
            {"type": "flow-changes", "port": 0, "changes": [change()] * 1001},
            "found 1001, expected at most 1000",
        ),
        ({"type": "flow-changes", "port": 7, "changes": []}, "port 7 was not announced"),
        ({"type": "ports", "ports": [pacec_port(eta=7)]}, "eta: found 7, expected a number from 0.01 to 1"),
        ({"type": "ports", "ports": [pacec_port(etta=7)]}, 'found "etta", expected a parameter of pacec'),
        ({"type": "ports", "ports": [pacec_port(sample="soon")]}, "params: "),
        ({"type": "ports", "ports": [pacec_port(sample=1_000_000, samples=1)]}, "at least 5ms"),
        ({"type": "ports", "ports": [pacec_port(), pacec_port()]}, "found a port twice"),
        (advertisement(0), "PACEC does not support 'flow-advertisement'"),
    ],
)
def test_invalid_bodies_are_refused_in_one_line(body, why):
    line = Line()
    line.join()
    line.notes.clear()
    line.say(body)
    (note,) = [effect for effect in line.notes if isinstance(effect, Note)]
    assert note.kind == "agent-refused" and why in note.text and "\n" not in note.text
    line.run(1)


def test_the_old_name_of_a_ports_rate_controller_is_read_and_shown():
    old = pacec_port()
    old["controller"] = old.pop("rate_controller")
    line = Line()
    line.join(old)
    (shown,) = (state.model_dump() for state in view.congestion(line.domain, line.now))
    assert (shown["rate_controller"], shown["controller"]) == ("pacec", "pacec")


def test_ports_of_other_rate_controllers_get_no_messages():
    line = Line()
    rcp = pacec_port() | {"rate_controller": "rcp"}
    line.join(rcp)
    line.say(report(0))
    (note,) = [effect for effect in line.notes if isinstance(effect, Note) and "refused" in effect.kind]
    assert "found a message of 'rcp', which does not send messages" in note.text
    assert [state.rate_controller for state in view.congestion(line.domain, line.now)] == ["rcp"]
    assert line.domain.capacity_bps((1, 2)) == 8 * FIRST


def test_an_agents_port_is_not_read_twice():
    line = Line()
    second = pacec_port(1, "s2-2", "02:00:00:00:02:02") | {"capacity": SECOND_LINK}
    line.join(pacec_port(), second)
    line.run(1)
    assert line.domain.path_rates.switches() == []


class Routers(Line):
    """Routers without OpenFlow. An agent has both ports of the configured path from A to C."""

    reporting = {0: FIRST, 1: SECOND_LINK}

    def __init__(self):
        path = {(IPS[A], IPS[C]): ("edge/s1-2", "edge/s1-3", "gone/s1-2")}
        Network.__init__(self, [], {}, Params(hold_ns=0, paths=path))
        self.flows, self.granted, self.sent = [], {}, {(1, 2): 0, (2, 2): 0}


def test_configured_paths_need_no_switches():
    line = Routers()
    second = pacec_port(1, at="s1-3", mac="02:00:00:00:01:03") | {"capacity": SECOND_LINK}
    line.join(pacec_port(), second)
    line.change(key(A, C))
    line.change(key(A, B))
    line.work(2)
    assert mbit(line.granted[IPS[C]]) == pytest.approx(9.8, rel=0.02), "the second port limits the flow"
    assert line.granted[IPS[B]] == 2**64 - 1, "a flow without a path has no limit"
