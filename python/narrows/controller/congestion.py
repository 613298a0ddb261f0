"""Agents, their ports, and what the detector says to them.

Agents number their ports themselves; the detector (`rate::sdn::Sdn`, in Rust) knows one number for each port
of the domain. This is the translation, and what people may want to see of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from narrows._native import Sdn
from narrows.controller import bodies
from narrows.controller.messages import Effect, Note, Say


@dataclass(slots=True)
class AgentPort:
    """A controlled port."""

    id: int
    """Its number in the domain."""
    info: bodies.PortInfo
    kind: str | None = None
    """The congestion: `queue`, `burst` or none."""
    since_ns: int = 0
    reports: int = 0
    report_ns: int | None = None
    """When the last report came in."""
    queued_bytes: int = 0
    """L3 bytes of the rated class in the queue, by the last report."""
    flows: tuple[bodies.FlowInfo, ...] = ()


@dataclass(slots=True)
class Agent:
    """A connected agent."""

    name: str
    address: str
    since_ns: int
    ports: dict[int, AgentPort] = field(default_factory=dict)
    """By the agent's number."""
    refused: int = 0
    """Bodies that were not in order."""


class Congestion:
    """The agents' side of the domain.

    Args:
        poll_ns: how often a port is polled, at most (BRF-73).
    """

    def __init__(self, poll_ns: int) -> None:
        self.poll_ns = poll_ns
        self.agents: dict[str, Agent] = {}
        self._sdn = Sdn()
        self._ids: dict[tuple[str, int], int] = {}
        """Kept over reconnections: what others hold of a port stays its own."""
        self._owners: dict[int, tuple[str, int]] = {}

    def up(self, now_ns: int, name: str, address: str) -> list[Effect]:
        """An agent has connected."""
        effects = self.down(name, "it connected anew") if name in self.agents else []
        self.agents[name] = Agent(name, address, now_ns)
        return [*effects, Note("agent-up", f"agent {name} connected from {address}", {"agent": name})]

    def down(self, name: str, reason: str) -> list[Effect]:
        """An agent is gone. Its switch goes on with its own detector."""
        agent = self.agents.pop(name, None)
        if agent is None:
            return []
        for port in agent.ports.values():
            self._sdn.detach(port.id)
        return [Note("agent-down", f"agent {name} is gone: {reason}", {"agent": name})]

    def says(self, now_ns: int, name: str, text: str) -> list[Effect]:
        """A body from an agent."""
        agent = self.agents.get(name)
        if agent is None:
            return []
        try:
            body = bodies.parse(text)
            if isinstance(body, bodies.Ports):
                return self._ports(now_ns, agent, body)
            port = agent.ports.get(body.port)
            if port is None:
                raise ValueError(f"port {body.port} was not announced")
            if isinstance(body, bodies.Flows):
                port.flows = tuple(body.flows)
                return []
            return self._relay(now_ns, agent, port, json.loads(text))
        except ValueError as error:
            agent.refused += 1
            if agent.refused > 1:
                return []
            why = str(error).replace("\n", " ")[:200]
            return [Note("agent-refused", f"agent {name}: a body is not in order: {why}", {"agent": name})]

    def tick(self, now_ns: int) -> list[Effect]:
        """Polls what is due."""
        return self._translate(now_ns, None, self._sdn.on_timer(now_ns))

    def next_timer_ns(self) -> int | None:
        """When `tick` wants to be called next."""
        return self._sdn.next_timer()

    def ports(self) -> Iterator[tuple[Agent, AgentPort]]:
        """All controlled ports, in order."""
        for name in sorted(self.agents):
            for number in sorted(self.agents[name].ports):
                yield self.agents[name], self.agents[name].ports[number]

    def verdict(self, port: AgentPort) -> tuple[float, float, float] | None:
        """The detector's last figures: eq 5, eq 6, arrivals as part of the share."""
        return self._sdn.verdict(port.id)

    def _ports(self, now_ns: int, agent: Agent, body: bodies.Ports) -> list[Effect]:
        for port in agent.ports.values():
            self._sdn.detach(port.id)
        before, agent.ports = agent.ports, {}
        for info in body.ports:
            key = (agent.name, info.port)
            number = self._ids.setdefault(key, len(self._ids) + 1)
            self._owners[number] = key
            params = {"poll": self.poll_ns, "thresholds": info.thresholds}
            self._sdn.attach(now_ns, number, json.dumps(params))
            agent.ports[info.port] = AgentPort(number, info)
            if info.port in before:
                agent.ports[info.port].flows = before[info.port].flows
        return self.tick(now_ns)

    def _relay(self, now_ns: int, agent: Agent, port: AgentPort, message: dict[str, object]) -> list[Effect]:
        message["port"] = port.id
        out = self._sdn.on_message(now_ns, port.id, json.dumps(message))
        if message["type"] == "report":
            port.reports += 1
            port.report_ns = now_ns
            queued = message.get("rated_queued")
            port.queued_bytes = queued if isinstance(queued, int) else 0
        return self._translate(now_ns, agent.name, out)

    def _translate(self, now_ns: int, sender: str | None, out: list[tuple[int, str]]) -> list[Effect]:
        """Messages for ports as bodies for agents: one poll for each agent, advertisements not back."""
        effects: list[Effect] = []
        told: set[tuple[str, str]] = set()
        for number, text in out:
            name, local = self._owners[number]
            body = json.loads(text)
            if body["type"] == "congestion":
                effects += self._congested(now_ns, name, local, body["kind"])
                body["port"] = local
            elif (name, body["type"]) in told or (body["type"] == "flow-advertisement" and name == sender):
                continue
            told.add((name, body["type"]))
            effects.append(Say(name, body))
        return effects

    def _congested(self, now_ns: int, name: str, local: int, kind: str | None) -> list[Effect]:
        port = self.agents[name].ports[local]
        if port.kind == kind:
            return []
        port.kind, port.since_ns = kind, now_ns
        what = f"congested ({kind})" if kind else "no longer congested"
        text = f"{port.info.interface} of {name} is {what}"
        return [Note("congestion" if kind else "clear", text, {"agent": name, "port": local, "kind": kind})]
