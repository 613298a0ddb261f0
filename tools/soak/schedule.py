"""The faults of a soak, as a pure function of its seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from signal import SIGHUP, SIGKILL, SIGSTOP, SIGTERM, Signals

AGENTS = ("switch", "sender-s1", "sender-s2")
CONTROLLERS = ("east", "west")
LINKS = ("s1", "s2", "c")
REST_S = 3.0
"""Shortest pause between two faults of the same target."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault."""

    name: str
    weight: int
    """Frequency, relative to the other kinds."""
    targets: tuple[str, ...]
    shortest_s: float = 0.0
    longest_s: float = 0.0
    signal: Signals | None = None
    """Signal to the program or its guardian; None for faults without a signal."""
    to_program: bool = True
    to_guardian: bool = False
    disturbs: bool = True
    """Whether the fault may reduce the flows' shares. If not, windows with this fault are judged, too."""

    @property
    def ends_program(self) -> bool:
        """Whether the fault ends the target. If so, the repair starts the target again."""
        return self.to_program and self.signal in (SIGKILL, SIGTERM)


KINDS = (
    Kind("kill", 5, AGENTS, 0.2, 4, SIGKILL),
    Kind("kill with guardian", 2, AGENTS, 0.2, 4, SIGKILL, to_guardian=True),
    Kind("terminate", 2, AGENTS, 0.2, 4, SIGTERM),
    Kind("pause", 2, AGENTS, 0.2, 3, SIGSTOP),
    Kind("link down", 2, LINKS, 0.1, 2),
    Kind("link deleted", 2, LINKS, 0.1, 2),
    Kind("kill guardian", 1, AGENTS, signal=SIGKILL, to_program=False, to_guardian=True, disturbs=False),
    Kind("reload", 1, AGENTS, signal=SIGHUP, disturbs=False),
    Kind("kill controller", 3, CONTROLLERS, 0.2, 6, SIGKILL, disturbs=False),
    Kind("pause controller", 2, CONTROLLERS, 0.5, 6, SIGSTOP, disturbs=False),
    Kind("clean", 1, ("all namespaces",), disturbs=False),
    Kind("hostile bytes", 2, ("open ports",), 2, 2, disturbs=False),
)


@dataclass(frozen=True)
class Fault:
    """A fault. `at_s` counts from the start of the load."""

    at_s: float
    kind: Kind
    target: str
    lasts_s: float

    def __str__(self) -> str:
        return f"{self.kind.name} {self.target}"


def schedule(seed: int, seconds: float, every_s: float) -> Iterator[Fault]:
    """The faults of a run of this length, with this mean time between them."""
    dice = random.Random(seed)
    free_s: dict[str, float] = {}
    at_s = 0.0
    while (at_s := at_s + dice.expovariate(1 / every_s)) < seconds:
        (kind,) = dice.choices(KINDS, [kind.weight for kind in KINDS])
        target = dice.choice(kind.targets)
        lasts_s = dice.uniform(kind.shortest_s, kind.longest_s)
        if at_s >= free_s.get(target, 0.0):
            free_s[target] = at_s + lasts_s + REST_S
            yield Fault(at_s, kind, target, lasts_s)
