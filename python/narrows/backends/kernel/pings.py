"""Simultaneous pings between all hosts of a switch. Each host pings the next host, in a circle."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from narrows.backends.kernel import star
from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.shell import KernelError
from narrows.backends.kernel.star import IsCancelled, Star, address
from narrows.errors import one_line

_GRACE_SECONDS = 20.0
_READY_SECONDS = 10.0
_REPLY = re.compile(r"time=([\d.]+) ms")
_SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+) received")


@dataclass(frozen=True)
class Pings:
    """An attempt, which consists of simultaneous pings.

    An object of this class can be converted to JSON and back, to pass it to a guest.
    """

    kind: ClassVar[str] = "pings"
    """Key of this kind of task in JSON."""
    noun: ClassVar[str] = "attempt"
    """The word for this kind of task in messages."""
    tools: ClassVar[tuple[str, ...]] = ("ping",)

    hosts: int
    count: int
    """Number of pings that each host sends."""
    interval_ms: int
    """Time between two pings of a host."""
    mtu: int = 1500
    """MTU of every port, bytes."""
    repetition: int = 1
    """Number of the attempt, from 1. This number is also the seed of a guest's random numbers."""

    def as_data(self) -> dict[str, Any]:
        """The attempt in a form that JSON can represent."""
        return asdict(self)

    @property
    def seconds(self) -> float:
        """Duration of the attempt."""
        return self.count * self.interval_ms / 1e3

    @property
    def star(self) -> Star:
        """The network of the attempt."""
        return Star(self.hosts, "", self.mtu)

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """For each command: the host that runs the command, and the command's words."""
        names = self.star.names
        words = ["ping", "-n", "-c", str(self.count), "-i", f"{self.interval_ms / 1e3:g}", "-W", "1"]
        return [
            (name, [*words, address(other)]) for name, other in zip(names, names[1:] + names[:1], strict=True)
        ]

    def perform(self, is_cancelled: IsCancelled = lambda: False) -> dict[str, Any]:
        """Perform the attempt.

        Returns:
            `report` with the pings of each host, and `ports`, which is empty.

        Raises:
            KernelError: if a tool fails.
            KeyboardInterrupt: if the run was cancelled.
        """
        with star.built(self.star) as programs:
            self._warm_up(programs, is_cancelled)
            running = {
                host: programs.start(host, f"ping-{host}", words, may_end=True)
                for host, words in self.commands
            }
            for host, process in running.items():
                star.wait(f"ping of {host}", process, self.seconds + _GRACE_SECONDS, is_cancelled)
            found = {
                host: parsed(programs.log(f"ping-{host}").read_text("utf-8", "replace")) for host in running
            }
        return {"report": {"pings": found}, "ports": {}}

    def _warm_up(self, programs: Processes, is_cancelled: IsCancelled) -> None:
        """Ping from each host until a reply arrives.

        A new switch's ports forward no packets at first. If a request for a neighbour's address is lost in
        this time, the kernel repeats the request after 1 s. Without the warm-up, the RTT of about a third of
        the pings would include this second.
        """
        for host, words in self.commands:
            once = ["ping", "-n", "-c", "1", "-w", str(round(_READY_SECONDS)), words[-1]]
            first = programs.start(host, f"first-{host}", once, may_end=True)
            star.wait(f"the first ping of {host}", first, _READY_SECONDS + _GRACE_SECONDS, is_cancelled)


def parsed(text: str) -> dict[str, Any]:
    """Return the pings in the output of ping(8) as the number sent, the number received, and RTTs in ms.

    Raises:
        KernelError: if the output has no summary.
    """
    summary = _SUMMARY.search(text)
    if summary is None:
        last = (text.strip().splitlines() or ["no output"])[-1]
        raise KernelError(one_line(f"ping: found no summary: {last}"))
    rtts = [float(time) for time in _REPLY.findall(text)]
    return {"sent": int(summary[1]), "received": int(summary[2]), "rtts_ms": rtts}
