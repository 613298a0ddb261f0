"""Manages agents, their ports, and the application that makes the decisions for each port.

Each agent numbers its own ports. Applications use other numbers, which are unique in the domain. This module
translates between an agent's numbers and the domain's numbers. It also stores the data about agents that the
page shows. There is one `Application` for each kind of rate controller that needs an application.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from narrows._native import FlowChanges, FlowInfo, Flows, Message, PortInfo, Ports, parse_body
from narrows.controller.messages import CongestionKind, Effect, Note, SendToAgent
from narrows.errors import one_line

Outgoing = list[tuple[int, Message]]
"""Messages to agents. Each message is paired with the domain's number of the port that it concerns."""
NUMBERS_MAX = 1 << 16
"""Maximum number of ports whose numbers are remembered."""


class Application(Protocol):
    """Makes the decisions for the ports of one kind of rate controller.

    `port` is a port's number in the domain.
    """

    def attach(self, now_ns: int, port: int, info: PortInfo) -> None:
        """Adds a port. If the port is already known, its control starts from the beginning.

        Raises:
            ValueError: the port's parameters are invalid.
        """

    def detach(self, port: int) -> None:
        """Removes a port."""

    def on_message(self, now_ns: int, port: int, body: Message | FlowChanges) -> Outgoing:
        """Handles a message about the port with the number `port` in the domain.

        The body contains the agent's own number of this port.

        Raises:
            ValueError: the application does not support the message.
        """

    def tick(self, now_ns: int) -> Outgoing:
        """Handles the passage of time."""

    def next_timer_ns(self) -> int | None:
        """Time of the next call of `tick`."""


@dataclass(slots=True)
class AgentPort:
    """A controlled port."""

    id: int
    """The port's number in the domain."""
    info: PortInfo
    kind: CongestionKind | None = None
    """The kind of congestion: `queue`, `burst` or none."""
    since_ns: int = 0
    reports: int = 0
    report_ns: int | None = None
    """Time of the last report."""
    queued_bytes: int = 0
    """L3 bytes of the rated class (the flows with rates) in the queue, according to the last report."""
    flows: tuple[FlowInfo, ...] = ()


@dataclass(slots=True)
class Agent:
    """A connected agent."""

    name: str
    address: str
    since_ns: int
    ports: dict[int, AgentPort] = field(default_factory=dict)
    """Ports of the agent. The key is the number that the agent uses for the port."""
    refused: int = 0
    """Number of invalid message bodies that this agent sent."""


class Numbers:
    """Numbers of ports in the domain. A port keeps its number when its agent reconnects.

    If there are more than `NUMBERS_MAX` ports, the least recently used port loses its number. If such a port
    appears again, it gets a new number.
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, int] = {}
        """Number of each port, in order of use, with the most recently used port at the end."""
        self._last = 0

    def of(self, port: Hashable) -> int:
        """The number of a port. `port` is any key that identifies the port."""
        number = self._of.pop(port, None)
        if number is None:
            self._last = number = self._last + 1
            if len(self._of) >= NUMBERS_MAX:
                del self._of[next(iter(self._of))]
        self._of[port] = number
        return number


class Agents:
    """The agents' side of the domain.

    Args:
        numbers: the numbers of the domain's ports.
        applications: the applications by kind of rate controller.
    """

    def __init__(self, numbers: Numbers, applications: Mapping[str, Application]) -> None:
        self.by_name: dict[str, Agent] = {}
        self._numbers = numbers
        self._applications = applications
        self._owners: dict[int, tuple[str, int]] = {}

    def up(self, now_ns: int, name: str, address: str) -> list[Effect]:
        """Handles the connection of an agent."""
        effects = self.down(name, "it reconnected") if name in self.by_name else []
        self.by_name[name] = Agent(name, address, now_ns)
        return [*effects, Note("agent-up", f"agent {name} connected from {address}", {"agent": name})]

    def down(self, name: str, reason: str) -> list[Effect]:
        """Handles the end of an agent's connection.

        The agent's switch continues to work with its current state.
        """
        agent = self.by_name.pop(name, None)
        if agent is None:
            return []
        self._detach(agent)
        return [Note("agent-down", f"agent {name} disconnected: {reason}", {"agent": name})]

    def on_message(self, now_ns: int, name: str, text: str) -> list[Effect]:
        """Handles a message body from an agent."""
        agent = self.by_name.get(name)
        if agent is None:
            return []
        try:
            body = parse_body(text)
            if isinstance(body, Ports):
                return self._ports(now_ns, agent, body.ports)
            port = None if body.port is None else agent.ports.get(body.port)
            if port is None:
                raise ValueError(f"port {body.port} was not announced")
            if isinstance(body, Flows):
                port.flows = tuple(body.flows)
                return []
            return self._relay(now_ns, agent, port, body)
        except ValueError as error:
            agent.refused += 1
            if agent.refused > 1:
                return []
            why = one_line(str(error)[:200])
            return [Note("agent-refused", f"agent {name} sent an invalid body: {why}", {"agent": name})]

    def tick(self, now_ns: int) -> list[Effect]:
        """Handles the passage of time."""
        out = [message for app in self._applications.values() for message in app.tick(now_ns)]
        return self.translate(now_ns, None, out)

    def next_timer_ns(self) -> int | None:
        """Time of the next call of `tick`."""
        times = (app.next_timer_ns() for app in self._applications.values())
        return min((at for at in times if at is not None), default=None)

    def ports(self) -> Iterator[tuple[Agent, AgentPort]]:
        """All controlled ports, sorted by agent and by the agent's number of the port."""
        for name in sorted(self.by_name):
            for number in sorted(self.by_name[name].ports):
                yield self.by_name[name], self.by_name[name].ports[number]

    def translate(self, now_ns: int, sender: str | None, out: Outgoing) -> list[Effect]:
        """Converts messages for ports into bodies for agents.

        A poll asks for all ports of an agent. Each agent therefore gets at most one poll, even if several of
        its ports are due. An advertisement is not sent back to the agent that sent it. Messages for ports
        without an agent are dropped.
        """
        effects: list[Effect] = []
        told: set[tuple[str, str]] = set()
        for number, message in out:
            name, local = self._owners.get(number, ("", 0))
            if not name:
                continue
            kind = message.type
            if kind not in ("congestion", "grants") and (
                (name, kind) in told or (kind == "flow-advertisement" and name == sender)
            ):
                continue
            if kind == "congestion":
                effects += self._congested(now_ns, name, local, message.kind)
            told.add((name, kind))
            effects += [SendToAgent(name, body) for body in message.to_agent(local)]
        return effects

    def _detach(self, agent: Agent) -> None:
        for port in agent.ports.values():
            self._owners.pop(port.id, None)
            if (app := self._applications.get(port.info.rate_controller)) is not None:
                app.detach(port.id)

    def _ports(self, now_ns: int, agent: Agent, ports: list[PortInfo]) -> list[Effect]:
        self._detach(agent)
        before, agent.ports = agent.ports, {}
        for info in ports:
            key = (agent.name, info.port)
            number = self._numbers.of(key)
            if (app := self._applications.get(info.rate_controller)) is not None:
                app.attach(now_ns, number, info)
            self._owners[number] = key
            agent.ports[info.port] = AgentPort(number, info)
            if info.port in before:
                agent.ports[info.port].flows = before[info.port].flows
        return self.tick(now_ns)

    def _relay(self, now_ns: int, agent: Agent, port: AgentPort, body: Message | FlowChanges) -> list[Effect]:
        app = self._applications.get(port.info.rate_controller)
        if app is None:
            raise ValueError(
                f"found a message of {port.info.rate_controller!r}, which does not send messages"
            )
        out = app.on_message(now_ns, port.id, body)
        if isinstance(body, Message) and body.rated_queued is not None:
            port.reports += 1
            port.report_ns = now_ns
            port.queued_bytes = body.rated_queued
        return self.translate(now_ns, agent.name, out)

    def _congested(self, now_ns: int, name: str, local: int, kind: CongestionKind | None) -> list[Effect]:
        port = self.by_name[name].ports[local]
        if port.kind == kind:
            return []
        port.kind, port.since_ns = kind, now_ns
        what = f"congested ({kind})" if kind else "no longer congested"
        text = f"{port.info.interface} of {name} is {what}"
        return [Note("congestion" if kind else "clear", text, {"agent": name, "port": local, "kind": kind})]
