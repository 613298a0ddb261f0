"""Fuzzes the checks of bodies of accepted agents, the decisions that follow, and the page.

An input that begins with `{` is a list of lines, each with one body in JSON. Any other input is a list of
steps: a body of one of two agents, a host, link or switch that appears or vanishes, or a time that passes.
Most of these bodies are valid, and an input can replace one value of a body. The domain has two switches and
four hosts.
"""

import json

from narrows.controller import flows, view
from narrows.controller.domain import SECOND, Domain, Params, PortParams
from narrows.controller.messages import (
    AgentDown,
    AgentMessage,
    AgentUp,
    Counters,
    CountersRead,
    FrameSeen,
    LldpSeen,
    Note,
    PortChanged,
    PortDesc,
    PortGone,
    SendToAgent,
    SwitchDown,
    SwitchUp,
)

STEPS_MAX = 64
AGENTS = ("a", "b")
ADDRESSES = ("10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2", "fd00::1", "none", "", "10.0.9.9")
INTERFACES = ("s1-3", "s2-3", "s1-1", "eth0")
MACS = ("02:00:00:00:01:03", "02:00:00:00:02:03", "02:00:00:00:01:01", "none")
KINDS = ("brf", "pacec", "rcp", "")
PARAMS = (
    {},
    {"signal": "in-band"},
    {"sample": 1_000_000},
    {"eta": 0.5, "samples": 3},
    {"eta": "x"},
    {"floor_packets": 0},
)
NUMBERS = (0, 1, 3, 1500, 5_000_000, 12_500_000, 100_000_000, 20_000_000_000, (1 << 63) - 1)
ODD = (None, True, -1, 1 << 63, 1 << 64, 1.5, 1e308, "", "x", "10.0.1.1", [], [0], {}, {"type": "poll"})
MODES = ("resolved", "literal")


def port(number, dpid, up=True):
    return PortDesc(number, f"s{dpid}-{number}", f"02:00:00:00:0{dpid}:0{number}", up, 0)


def network():
    """A domain that knows its network. One link has no agent, and PACEC reads the counters of this link."""
    rates = {(1, 1): PortParams(rate_bps=100_000_000)}
    domain, now_ns = Domain(0, Params(hold_ns=0, ports=rates)), SECOND
    for dpid in (1, 2):
        domain.handle(now_ns, SwitchUp(dpid, tuple(port(n, dpid) for n in (1, 2, 3))))
    domain.handle(now_ns, LldpSeen(1, 3, 2, 3))
    domain.handle(now_ns, LldpSeen(2, 3, 1, 3))
    now_ns += 3 * SECOND
    domain.tick(now_ns)
    for dpid in (1, 2):
        for number in (1, 2):
            domain.handle(
                now_ns, FrameSeen(dpid, number, f"0a:00:00:00:0{dpid}:0{number}", f"10.0.{dpid}.{number}")
            )
    return domain, now_ns


class Input:
    """Reads an input byte by byte. After the end of the input, it returns zeros."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def is_over(self):
        return self.at >= len(self.data)

    def pick(self, values):
        return values[self.byte() % len(values)]

    def number(self):
        kind = self.byte()
        return NUMBERS[kind] if kind < len(NUMBERS) else (kind << 8 | self.byte()) * 1000

    def some(self, most, make):
        return [make() for _ in range(self.byte() % (most + 1))]


def key(data):
    return {
        "saddr": data.pick(ADDRESSES),
        "daddr": data.pick(ADDRESSES),
        "sport": data.byte(),
        "dport": data.pick((80, 443)),
        "proto": data.pick(("tcp", "tcp", "udp", "x")),
    }


def port_info(data):
    info = {
        "port": data.byte() % 4,
        "interface": data.pick(INTERFACES),
        "ifindex": data.byte(),
        "mac": data.pick(MACS),
        "mtu": data.number(),
        "capacity": data.number(),
        "rate_controller": data.pick(KINDS),
        "params": dict(data.pick(PARAMS)),
    }
    if data.byte() & 1:
        info["thresholds"] = {
            "mode": data.pick(MODES),
            "u_th": data.byte() / 128,
            "q_th": data.byte() / 128,
            "q_delay_max": data.number(),
            "q_packets_min": data.byte(),
            "burst_threshold": data.byte() / 128,
            "packet": data.number(),
        }
    return info


def report(data):
    counts = (
        "at",
        "capacity",
        "rated_share",
        "rated_arrived",
        "departed",
        "departed_packets",
        "rated_queued",
        "period",
    )
    body = {"type": "report", "port": data.byte() % 4, **{name: data.number() for name in counts}}
    return body | {name: [data.number(), data.number()] for name in ("rated_packets", "all_packets")}


def flow_changes(data):
    def change():
        return {
            "key": key(data),
            "begun": data.byte() & 1 == 0,
            "demand": data.pick((None, 0, 1000, 12_500_000)),
        }

    return {"type": "flow-changes", "port": data.byte() % 4, "changes": data.some(4, change)}


def flow_list(data):
    def flow():
        return {
            "key": key(data),
            "class": data.pick(("rated", "other-tcp", "udp", "x")),
            "leaf": data.pick(("mouse", "elephant", "x")),
            "allocation": data.pick((None, 0, 1000)),
            "rate": data.number(),
            "rtt": data.pick((None, 0, 1000)),
        }

    return {"type": "flows", "port": data.byte() % 4, "flows": data.some(4, flow)}


def advertisement(data):
    own = {"rate": data.number(), "port": data.byte() % 4, "seq": data.byte(), "valid_for": data.number()}
    return {"type": "flow-advertisement", "key": key(data), **own}


def ports(data):
    return {"type": "ports", "ports": data.some(3, lambda: port_info(data))}


def spoil(data, body):
    """Replaces one value of the body, at any depth."""
    place = body
    while True:
        names = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not names:
            return
        name = data.pick(names)
        if not isinstance(place[name], dict | list) or data.byte() & 1:
            place[name] = data.pick(ODD)
            return
        place = place[name]


BODIES = (ports, ports, report, report, flow_changes, flow_changes, flow_list, advertisement)


def step(data):
    """An event, and the time before it."""
    kind, dpid, number = data.byte(), 1 + data.byte() % 2, 1 + data.byte() % 3
    if kind < 192:
        body = BODIES[kind % len(BODIES)](data)
        if kind & 64:
            spoil(data, body)
        return AgentMessage(data.pick(AGENTS), json.dumps(body))
    counters = Counters(*(data.number() for _ in range(7))) if kind % 8 == 7 else None
    match kind % 8:
        case 0:
            return AgentUp(data.pick(AGENTS), "192.0.2.1:1")
        case 1:
            return AgentDown(data.pick(AGENTS), "it closed the connection")
        case 2:
            return FrameSeen(dpid, number, f"0a:00:00:00:00:0{data.byte() % 8}", data.pick(ADDRESSES[:5]))
        case 3:
            return LldpSeen(dpid, number, 3 - dpid, 1 + data.byte() % 3)
        case 4:
            return PortChanged(dpid, port(number, dpid, data.byte() & 1 == 0))
        case 5:
            return PortGone(dpid, number)
        case 6 if data.byte() & 1:
            return SwitchDown(dpid)
        case 6:
            return SwitchUp(dpid, tuple(port(n, dpid) for n in (1, 2, 3)))
        case _:
            return CountersRead(dpid, {number: counters})


def events(data):
    """The events of an input, each with the time that passes before it."""
    if data.startswith(b"{"):
        for line in data.split(b"\n")[:STEPS_MAX]:
            yield SECOND // 10, AgentMessage("a", line.decode("utf-8", "replace"))
        return
    steps = Input(data)
    for _ in range(STEPS_MAX):
        if steps.is_over():
            return
        event = step(steps)
        yield steps.byte() * SECOND // 50, event


def check(effects):
    """Checks that each effect can be carried out."""
    for effect in effects:
        if isinstance(effect, Note):
            assert effect.text.isprintable(), effect.text
        elif isinstance(effect, SendToAgent):
            assert json.loads(effect.body)["type"] and "\n" not in effect.body


def run(data):
    domain, now_ns = network()
    check(domain.handle(now_ns, AgentUp("a", "192.0.2.1:1")))
    for passed_ns, event in events(data):
        now_ns += passed_ns
        check(domain.handle(now_ns, event))
        check(domain.tick(now_ns))
    view.topology(domain).model_dump_json()
    _, listed = flows.select(flows.ports(domain), flows.Query())
    for shown in (listed, view.congestion(domain, now_ns), view.agents(domain, now_ns)):
        assert all(one.model_dump_json() for one in shown)
    check(domain.handle(now_ns, AgentDown("a", "it closed the connection")))
