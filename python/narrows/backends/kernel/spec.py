"""Makes the specification of a run for the real-time part (`_native.emulate`), without side effects."""

from __future__ import annotations

from typing import Any

from narrows import _native
from narrows.backends.kernel import cc
from narrows.backends.kernel.agents import HTB, algorithm, by_agent, port_rate
from narrows.backends.kernel.commands import HANDLE, leaf_classes
from narrows.backends.kernel.layout import WIRE, Layout, Port, has_agent
from narrows.backends.kernel.namespaces import path
from narrows.congestion import chosen
from narrows.plan import FlowPlan, LinkPlan, Plan

FIRST_SOURCE_PORT = 40_000
"""First source port of TCP senders, see `source_ports`."""
_LAST_SOURCE_PORT = 65_535


def source_ports(plan: Plan) -> list[int | None]:
    """Source port of each flow's first connection. The other members of a group use the next higher ports.

    The value is None:

    - for a source of arrivals, because its many flows would soon use up all ports
    - for a program, which chooses its own ports
    - for a flow for which too few ports are left
    """
    ports: list[int | None] = []
    free = FIRST_SOURCE_PORT
    for flow in plan["flows"]:
        chooses = flow["app"]["kind"] == "poisson" or flow["transport"]["kind"] == "program"
        count = 0 if chooses else flow["count"]
        fits = count and free + count - 1 <= _LAST_SOURCE_PORT
        ports.append(free if fits else None)
        free += count if fits else 0
    return ports


def spec(
    plan: Plan, layout: Layout, prefix: str, start: int, interval: int, external: bool = False
) -> dict[str, Any]:
    """The specification of a run.

    Args:
        plan: the plan of the run.
        layout: the layout of the plan.
        prefix: the prefix of the namespaces.
        start: start of the run, ns of CLOCK_MONOTONIC.
        interval: sampling interval of sockets and queues, ns.
        external: whether iperf3 generates the flows.
    """

    def place(namespace: str, device: str) -> dict[str, str]:
        return {"netns": path(prefix + namespace), "interface": device}

    controlled = {controller["link"] for controller in plan["rate_controllers"] if has_agent(controller)}
    ports = source_ports(plan)
    ends = sorted({node for flow in plan["flows"] for node in (flow["from"], flow["to"])})
    return {
        "plan": {key: value for key, value in plan.items() if key != "kernel"} | {"links": _links(plan)},
        "namespaces": {plan["nodes"][node]: path(prefix + layout.namespace(node)) for node in ends},
        "relays": [
            {
                "link": relay.link,
                "from": place(WIRE, relay.ingress),
                "to": place(WIRE, relay.egress),
                "model": "rate" if relay.shapes else "delay",
            }
            for relay in layout.relays
            if relay.netem is None
        ],
        "flows": [
            {
                "flow": number,
                "source": layout.endpoints[endpoints].source_address,
                "destination": layout.endpoints[endpoints].to_address,
                "port": _native.FIRST_PORT + number,
                "congestion": _congestion(plan["flows"][number], prefix),
                "external": external,
                "source_port": ports[number],
            }
            for number, endpoints in enumerate(layout.of_flow)
        ],
        "queues": [
            {
                "link": port.link,
                **place(layout.namespace(port.node), port.device),
                "handle": name,
                "header": 0,
            }
            for port in layout.ports
            for name in _classes(port, controlled)
        ]
        + [
            {"link": relay.link, **place(WIRE, relay.egress), "handle": HANDLE, "role": "loss"}
            for relay in layout.relays
            if relay.netem is not None and relay.netem.loss
        ],
        "start": start,
        "sample_interval": interval,
    }


def _congestion(flow: FlowPlan, prefix: str) -> str | None:
    """The kernel's name for a flow's CCA.

    The result is None for UDP, or if the kernel's name equals the plan's name.
    """
    if name := by_agent(flow):
        return algorithm(prefix, name)
    return cc.NAMES.get(chosen(flow))


def _classes(port: Port, controlled: set[int]) -> list[str]:
    """The classes of a port's queue in our HTB.

    For a port with an agent, the result is the agent's HTB as a whole, because it has many classes.
    """
    if port.link in controlled:
        return [HTB]
    return [] if port.queue is None else leaf_classes(port.queue)


def _links(plan: Plan) -> list[LinkPlan]:
    """The links with their effective rates. The effective rate of a shaped port is the shaper's rate."""
    links = list(plan["links"])
    for number, controller in enumerate(plan["rate_controllers"]):
        if not has_agent(controller):
            continue
        shaped = links[controller["link"]].copy()
        shaped["rate"] = {"kind": "steps", "steps": port_rate(plan, number)}
        links[controller["link"]] = shaped
    return links
