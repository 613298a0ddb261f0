"""Checks samples against thresholds, and reports the alerts that have begun or ended.

An alert begins when its condition has held for the time `for`, and ends when the condition has not held for
the same time. A value that repeatedly crosses its threshold therefore causes few alerts. The alert for a
silent agent ends with the agent's next message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from narrows._native import FlowKey
from narrows.controller.flows import share
from narrows.controller.sample import PortSample, Sample
from narrows.controller.view import AlertSeverity
from narrows.units import NANOS_PER_SEC as SECOND

ACTIVE_MAX = 500
"""Maximum number of active alerts. Further alerts are only counted. They begin when active alerts end."""
AGENTS_MAX = 1024
"""Maximum number of absent agents that are remembered."""
FORGET_NS = 24 * 3600 * SECOND
"""An agent that is absent for this time is forgotten, unless the configuration lists it as expected."""
RuleName = Literal["queue", "agent", "flow"]


@dataclass(frozen=True, slots=True)
class QueueRule:
    """The rule for an alert about a queueing delay above a threshold."""

    above_ns: int
    for_ns: int
    severity: AlertSeverity = "warning"


@dataclass(frozen=True, slots=True)
class AgentRule:
    """The rule for an alert about an agent that sends nothing or is not connected."""

    silent_ns: int
    expected: tuple[str, ...] = ()
    """Agents that must be connected, even if they have never been connected before."""
    severity: AlertSeverity = "critical"


@dataclass(frozen=True, slots=True)
class FlowRule:
    """The rule for an alert about a flow whose rate is below a fraction of its allocation."""

    below: float
    for_ns: int
    severity: AlertSeverity = "warning"


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules. If a rule is None, its alert is switched off."""

    queue: QueueRule | None = None
    agent: AgentRule | None = None
    flow: FlowRule | None = None

    def __bool__(self) -> bool:
        return any((self.queue, self.agent, self.flow))


class Key(NamedTuple):
    """The subject of an alert. There is one alert for each key."""

    rule: RuleName
    agent: str
    interface: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that has begun."""

    key: Key
    severity: AlertSeverity
    since_s: float
    """Unix time of the start."""
    text: str
    """The condition in words, with the values of the last sample in which it held."""
    ends_s: float | None = None
    """Unix time of the end."""


@dataclass(slots=True)
class _Active:
    alert: Alert
    true_ns: int
    """Time at which the condition last held."""


@dataclass(slots=True)
class Alerts:
    """The state of all thresholds.

    Args:
        now_ns: monotonic time of the start, from which the absence of expected agents is counted.
        rules: the thresholds.
    """

    now_ns: int
    rules: Rules
    left_out: int = 0
    """Number of alerts in the last sample that could not begin, because `ACTIVE_MAX` alerts were already
    active."""
    _pending: dict[Key, int] = field(default_factory=dict)
    _active: dict[Key, _Active] = field(default_factory=dict)
    _absent: dict[str, int] = field(default_factory=dict)
    """For each absent agent, the time at which its absence began: the end of its last connection, or `now_ns`
    if the agent is expected but has never been connected."""
    _present: set[str] = field(default_factory=set)
    _slow: dict[tuple[str, FlowKey], int] = field(default_factory=dict)
    """For each flow below its threshold, the time at which it fell below the threshold."""

    def __post_init__(self) -> None:
        if self.rules.agent is not None:
            self._absent = dict.fromkeys(self.rules.agent.expected, self.now_ns)

    @property
    def active(self) -> list[Alert]:
        """All active alerts (begun and not ended), oldest first."""
        return [active.alert for active in self._active.values()]

    def check(self, now_ns: int, unix_s: float, sample: Sample) -> list[Alert]:
        """Handles a sample, and returns the alerts that have begun or ended."""
        if not self.rules:
            return []
        changed, self.left_out = [], 0
        true = dict(self._conditions(now_ns, sample))
        for key, text in true.items():
            if (own := self._active.get(key)) is not None:
                own.true_ns, own.alert = now_ns, replace(own.alert, text=text)
            elif now_ns - self._pending.setdefault(key, now_ns) >= self._begin_ns(key.rule):
                if len(self._active) >= ACTIVE_MAX:
                    self.left_out += 1
                    continue
                del self._pending[key]
                alert = Alert(key, self._severity(key.rule), unix_s, text)
                self._active[key] = _Active(alert, now_ns)
                changed.append(alert)
        self._pending = {key: since_ns for key, since_ns in self._pending.items() if key in true}
        for key, own in list(self._active.items()):
            if key not in true and now_ns - own.true_ns >= self._end_ns(key.rule):
                del self._active[key]
                changed.append(replace(own.alert, ends_s=unix_s))
        return changed

    def _severity(self, rule: RuleName) -> AlertSeverity:
        severity: AlertSeverity = getattr(self.rules, rule).severity
        return severity

    def _begin_ns(self, rule: RuleName) -> int:
        # The rules for agents and flows already include the time for which a condition must hold. Their
        # alerts therefore begin without a further wait.
        return self._end_ns(rule) if rule == "queue" else 0

    def _end_ns(self, rule: RuleName) -> int:
        match rule, self.rules:
            case ("queue", Rules(queue=QueueRule(for_ns=for_ns))):
                return for_ns
            case ("flow", Rules(flow=FlowRule(for_ns=for_ns))):
                return for_ns
        return 0

    def _conditions(self, now_ns: int, sample: Sample) -> Iterator[tuple[Key, str]]:
        """The keys of the alerts whose conditions hold, each with the condition and its values in words."""
        if (queue := self.rules.queue) is not None:
            for port in sample.ports:
                delay_s = port.queue_s
                if port.agent is not None and delay_s is not None and delay_s * 1e9 > queue.above_ns:
                    text = (
                        f"the queue of {port.interface} of {port.agent} is {delay_s * 1e3:.1f} ms long; "
                        f"the threshold is {queue.above_ns / 1e6:g} ms"
                    )
                    yield Key("queue", port.agent, port.interface), text
        if self.rules.agent is not None:
            yield from self._silent(now_ns, sample, self.rules.agent)
        if self.rules.flow is not None:
            yield from self._slow_flows(now_ns, sample, self.rules.flow)

    def _silent(self, now_ns: int, sample: Sample, rule: AgentRule) -> Iterator[tuple[Key, str]]:
        present = set(sample.silent_s)
        for name in present:
            self._absent.pop(name, None)
        for name in self._present - present:
            if len(self._absent) < AGENTS_MAX:
                self._absent[name] = now_ns
        self._present = present
        for name, seconds in sample.silent_s.items():
            if seconds * 1e9 >= rule.silent_ns:
                yield (
                    Key("agent", name),
                    f"agent {name} is connected and has sent nothing for {seconds:.0f} s",
                )
        for name, since_ns in list(self._absent.items()):
            absent_ns = now_ns - since_ns
            if absent_ns >= FORGET_NS and name not in rule.expected:
                del self._absent[name]
            elif absent_ns >= rule.silent_ns:
                yield Key("agent", name), f"agent {name} has not been connected for {absent_ns / 1e9:.0f} s"

    def _slow_flows(self, now_ns: int, sample: Sample, rule: FlowRule) -> Iterator[tuple[Key, str]]:
        before, self._slow = self._slow, {}
        for port in sample.ports:
            if port.agent is None:
                continue
            text = self._slow_at(now_ns, port, rule, before)
            if text is not None:
                yield Key("flow", port.agent, port.interface), text

    def _slow_at(
        self, now_ns: int, port: PortSample, rule: FlowRule, before: dict[tuple[str, FlowKey], int]
    ) -> str | None:
        """Describes the flows of a port that have been slow for long enough.

        All these flows cause a single alert.
        """
        count, worst_part, worst = 0, 1.0, None
        for flow in port.flows:
            part = share(flow)
            if part is None or part >= rule.below:
                continue
            own = (port.id, flow.key)
            since_ns = self._slow[own] = before.get(own, now_ns)
            if now_ns - since_ns >= rule.for_ns:
                count += 1
                if part < worst_part:
                    worst_part, worst = part, flow
        if worst is None:
            return None
        key, at, below = worst.key, f"{port.interface} of {port.agent}", f"{100 * rule.below:g} %"
        which = (
            f"a flow at {at} sends less than {below} of its allocation:"
            if count == 1
            else f"{count} flows at {at} send less than {below} of their allocation; the slowest is"
        )
        return (
            f"{which} {key.saddr}:{key.sport} to {key.daddr}:{key.dport} with "
            f"{100 * worst_part:.0f} % of {8e-6 * (worst.allocation or 0):.3g} Mbit/s"
        )
