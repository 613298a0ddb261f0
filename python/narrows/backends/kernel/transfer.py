"""One iperf3 transfer between two hosts at a switch. iperf3 measures the transfer, not the emulator."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from narrows.backends.kernel import modules, star
from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.shell import KernelError
from narrows.backends.kernel.star import IsCancelled, Star, address
from narrows.errors import one_line

CLIENT, SERVER = "h1", "h2"
_GRACE_SECONDS = 20.0


@dataclass(frozen=True)
class Transfer:
    """A transfer. An object of this class can be converted to JSON and back, to pass it to a guest."""

    kind: ClassVar[str] = "transfer"
    """Key of this kind of task in JSON."""
    noun: ClassVar[str] = "transfer"
    """The word for this kind of task in messages."""
    tools: ClassVar[tuple[str, ...]] = ("iperf3",)

    algorithm: str
    """The congestion control algorithm of both hosts."""
    seconds: int
    """Duration that is passed to iperf3."""
    rate: str
    """Rate of the queueing discipline tbf at every port, in the notation of tc(8)."""
    burst: int
    """Size of tbf's bucket, bytes."""
    limit: int
    """Maximum length of tbf's queue, bytes."""
    mtu: int = 1500
    """MTU of every port, bytes."""
    repetition: int = 1
    """Number of the repetition, from 1. This number is also the seed of a guest's random numbers."""

    def as_data(self) -> dict[str, Any]:
        """The transfer in a form that JSON can represent."""
        return asdict(self)

    @property
    def star(self) -> Star:
        """The network of the transfer."""
        tbf = f"tbf rate {self.rate} burst {self.burst} limit {self.limit}"
        return Star(2, tbf, self.mtu, self.algorithm)

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """For each command: the host that runs the command, and the command's words.

        With `--forceflush`, the server writes immediately to its log that it listens. In the survey paper,
        the client is called without `-t` and therefore sends for 10 s, iperf3's default.
        """
        client = ["iperf3", "-c", address(SERVER), "-J", "-t", str(self.seconds)]
        return [(SERVER, ["iperf3", "-s", "--forceflush"]), (CLIENT, client)]

    def perform(self, is_cancelled: IsCancelled = lambda: False) -> dict[str, Any]:
        """Perform the transfer.

        Returns:
            `report` with the client's JSON, and `ports` with tc's counters of each port.

        Raises:
            KernelError: if a tool fails, or if the sender did not use `algorithm`.
            KeyboardInterrupt: if the run was cancelled.
        """
        with modules.in_use(self.algorithm), star.built(self.star) as programs:
            report = self._measure(programs, is_cancelled)
            return {"report": report, "ports": star.drops(self.star, programs.prefix)}

    def _measure(self, programs: Processes, is_cancelled: IsCancelled) -> dict[str, Any]:
        (server, waits), (client, sends) = self.commands
        log = programs.log("iperf3-server")
        programs.start(server, "iperf3-server", waits)
        programs.wait_for("iperf3's server", lambda: "listening" in log.read_text(errors="replace"))
        running = programs.start(client, "iperf3", sends, may_end=True)
        star.wait("iperf3", running, self.seconds + _GRACE_SECONDS, is_cancelled)
        return checked(programs.log("iperf3").read_text("utf-8", "replace"), self.algorithm)


def checked(text: str, algorithm: str) -> dict[str, Any]:
    """Return the client's report, after a check that iperf3 succeeded with the expected algorithm.

    Raises:
        KernelError: if iperf3 failed, or if the sender did not use the expected algorithm.
    """
    try:
        report: dict[str, Any] = json.loads(text)
    except ValueError:
        raise KernelError(one_line(f"iperf3 wrote no JSON: {text.strip()[:200]}")) from None
    if "error" in report:
        raise KernelError(one_line(f"iperf3: {report['error']}"))
    had = report.get("end", {}).get("sender_tcp_congestion")
    if had != algorithm:
        raise KernelError(f"iperf3 reports the algorithm {had!r}, expected {algorithm!r}")
    return report
