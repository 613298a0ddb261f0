"""Searches and sorts flows, and divides them into pages.

Only references to the flows are copied under the domain's lock. The flows are searched, sorted and converted
after the lock has been released. Readers of the page therefore do not delay control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from narrows._native import FlowInfo
from narrows.controller import view
from narrows.controller.domain import Domain
from narrows.controller.sample import id_of

Ports = list[tuple[str, str, tuple[FlowInfo, ...]]]
"""The agent, the interface and the flows of each controlled port."""
Order = Literal["fastest", "slowest", "share", "rtt"]


class Row(NamedTuple):
    """A flow with its port."""

    agent: str
    interface: str
    flow: FlowInfo

    def text(self) -> str:
        """The text in which a search looks for words."""
        flow, key = self.flow, self.flow.key
        return (
            f"{key.saddr}:{key.sport} {key.daddr}:{key.dport} {key.proto} {flow.class_} {flow.leaf} "
            f"{self.interface} {self.agent}"
        ).lower()


@dataclass(frozen=True, slots=True)
class Query:
    """A query that selects and sorts flows.

    Args:
        search: words, each of which must occur in the flow's addresses, ports, protocol, class, leaf,
            interface or agent.
        port: identifier of a port; empty: all.
        class_: traffic class; empty: all.
        order: `fastest`, `slowest`, `share` (lowest fraction of the allocation first) or `rtt` (longest RTT
            first).
        offset: number of flows to leave out.
        limit: largest number of flows to return (None: all).
    """

    search: str = ""
    port: str = ""
    class_: str = ""
    order: Order = "fastest"
    offset: int = 0
    limit: int | None = None


def ports(domain: Domain) -> Ports:
    """References to the flows of all controlled ports."""
    return [(agent.name, port.info.interface, port.flows) for agent, port in domain.agents.ports()]


def share(flow: FlowInfo) -> float | None:
    """The rate as a fraction of the allocation."""
    return flow.rate / flow.allocation if flow.allocation else None


def _rank(order: Order, flow: FlowInfo) -> float:
    match order:
        case "fastest":
            return -flow.rate
        case "slowest":
            return flow.rate
        case "share":
            part = share(flow)
            return float("inf") if part is None else part
        case "rtt":
            return -(flow.rtt or 0)


def select(ports: Ports, query: Query) -> tuple[int, list[view.Flow]]:
    """The number of matching flows, and the flows that `offset` and `limit` select from them."""
    words = query.search.lower().split()
    found = []
    for agent, interface, flows in ports:
        if query.port and query.port != id_of(agent, interface):
            continue
        for flow in flows:
            if query.class_ and query.class_ != flow.class_:
                continue
            row = Row(agent, interface, flow)
            if words:
                text = row.text()
                if not all(word in text for word in words):
                    continue
            found.append(row)
    found.sort(key=lambda row: _rank(query.order, row.flow))
    end = None if query.limit is None else query.offset + query.limit
    return len(found), [_shown(row) for row in found[query.offset : end]]


def _shown(row: Row) -> view.Flow:
    flow = row.flow
    return view.Flow(
        agent=row.agent,
        interface=row.interface,
        source=flow.key.saddr,
        destination=flow.key.daddr,
        source_port=flow.key.sport,
        destination_port=flow.key.dport,
        protocol=flow.key.proto,
        class_=flow.class_,
        leaf=flow.leaf,
        allocation_bps=None if flow.allocation is None else 8 * flow.allocation,
        rate_bps=8 * flow.rate,
        rtt_s=None if flow.rtt is None else flow.rtt / 1e9,
    )
