"""Bodies of an accepted agent: their checks, the decisions that follow, and the page.

The input is a list of lines, each with one body in JSON. The domain has two switches and four hosts.
"""

import json

from narrows.controller import flows, view
from narrows.controller.domain import SECOND, Domain, Params
from narrows.controller.messages import (
    AgentDown,
    AgentMessage,
    AgentUp,
    FrameSeen,
    LldpSeen,
    Note,
    PortDesc,
    SendToAgent,
    SwitchUp,
)

STEPS_MAX = 64


def network():
    """A domain that knows its network."""
    domain, now_ns = Domain(0, Params(hold_ns=0)), SECOND
    for dpid in (1, 2):
        ports = tuple(PortDesc(n, f"s{dpid}-{n}", f"02:00:00:00:0{dpid}:0{n}", True, 0) for n in (1, 2, 3))
        domain.handle(now_ns, SwitchUp(dpid, ports))
    domain.handle(now_ns, LldpSeen(1, 3, 2, 3))
    domain.handle(now_ns, LldpSeen(2, 3, 1, 3))
    now_ns += 3 * SECOND
    domain.tick(now_ns)
    for dpid in (1, 2):
        for port in (1, 2):
            domain.handle(
                now_ns, FrameSeen(dpid, port, f"0a:00:00:00:0{dpid}:0{port}", f"10.0.{dpid}.{port}")
            )
    return domain, now_ns


def check(effects):
    """Each effect can be carried out."""
    for effect in effects:
        if isinstance(effect, Note):
            assert effect.text.isprintable(), effect.text
        elif isinstance(effect, SendToAgent):
            json.dumps(effect.body)


def run(data):
    domain, now_ns = network()
    check(domain.handle(now_ns, AgentUp("a", "192.0.2.1:1")))
    for line in data.split(b"\n")[:STEPS_MAX]:
        now_ns += SECOND // 10
        check(domain.handle(now_ns, AgentMessage("a", line.decode("utf-8", "replace"))))
        check(domain.tick(now_ns))
    view.topology(domain).model_dump_json()
    _, listed = flows.select(flows.ports(domain), flows.Query())
    for shown in (listed, view.congestion(domain, now_ns), view.agents(domain, now_ns)):
        assert all(one.model_dump_json() for one in shown)
    check(domain.handle(now_ns, AgentDown("a", "it closed the connection")))
