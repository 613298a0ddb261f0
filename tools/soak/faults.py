"""Causes and repairs the faults of a soak."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from dataclasses import dataclass

from fairness import Disturbance
from network import SENDERS, Network
from programs import LONG_FLOWS, START_S, Program, Programs
from result import Result
from schedule import Fault

WITHOUT_INTERFACE = re.compile(
    r"no network interface is called|no interface \S+; `ip link`|attaching to an interface .*No such device"
)
"""Errors of an agent whose interface does not exist, or is removed while the agent starts."""


@dataclass
class Open:
    """A fault that has begun and has not ended."""

    fault: Fault
    begin_s: float
    is_repaired: bool = False
    attacker: subprocess.Popen[bytes] | None = None

    @property
    def end_s(self) -> float:
        """Time of the repair."""
        return self.begin_s + self.fault.lasts_s


class Faults:
    """The faults of one soak."""

    def __init__(self, network: Network, programs: Programs, seed: int, result: Result) -> None:
        self.network, self.programs, self.seed, self.result = network, programs, seed, result
        self.open: list[Open] = []
        self.disturbances: list[Disturbance] = []
        """The faults that have ended and may have reduced a flow's share."""
        self._just_ended: list[Fault] = []
        """The faults that the current call of `repair` has ended. They can still cause an agent to end."""

    def begin(self, fault: Fault) -> None:
        """Causes a fault."""
        self.result.faults[str(fault)] += 1
        begun = Open(fault, time.monotonic())
        kind = fault.kind
        if kind.signal is not None:
            program = self.programs.deployed[fault.target]
            program.send(kind.signal, guardian=kind.to_guardian, itself=kind.to_program)
        match kind.name:
            case "link down":
                self.network.set_link(fault.target, "down")
            case "link deleted":
                self.network.disconnect(fault.target)
            case "clean":
                self.programs.clean()
            case "hostile bytes":
                begun.attacker = self.programs.pester(self.seed + self.result.faults.total())
        self.open.append(begun)

    def repair(self) -> None:
        """Repairs the faults that are due. A fault has ended when its program answers again."""
        now_s = time.monotonic()
        self._just_ended.clear()
        for begun in [each for each in self.open if each.end_s <= now_s]:
            fault, program = begun.fault, self.programs.deployed.get(begun.fault.target)
            begun.is_repaired = begun.is_repaired or self._undo(begun, program)
            hangs = now_s > begun.end_s + START_S
            if hangs:
                log = program.tail() if program else ""
                self.result.fail(f"{fault}: no answer for {START_S:.0f} s: {log}")
            if hangs or (begun.is_repaired and (program is None or program.answers())):
                self.open.remove(begun)
                self._just_ended.append(fault)
                if fault.kind.disturbs:
                    found = Disturbance(begun.begin_s, now_s, str(fault), orphans(fault))
                    self.disturbances.append(found)
        self._find_ended()

    def _undo(self, begun: Open, program: Program | None) -> bool:
        """Repairs a fault. Returns false if the fault's program has not ended yet."""
        kind, target = begun.fault.kind, begun.fault.target
        if program is not None and kind.ends_program:
            if program.pid is not None:
                return False
            program.start()
        if program is not None and kind.signal is signal.SIGSTOP:
            program.send(signal.SIGCONT)
        if kind.name == "link down":
            self.network.set_link(target, "up")
        if kind.name == "link deleted":
            self.network.connect(target)
        if begun.attacker is not None:
            begun.attacker.terminate()
            begun.attacker.wait()
        return True

    def _find_ended(self) -> None:
        """Reports programs that ended without a fault, and restarts them.

        If an agent starts while its interface is deleted, it logs an error and ends. The soak restarts such
        an agent without a report, as systemd would do.
        """
        broken = {begun.fault.target for begun in self.open if not begun.is_repaired}
        deleted = {agent_at(begun.fault) for begun in self.open} | {
            agent_at(fault) for fault in self._just_ended
        }
        for program in (*self.programs.deployed.values(), *self.programs.traffic.values()):
            if program.process is not None and program.pid is None and program.name not in broken:
                if program.name not in deleted or not is_without_interface(program.output()):
                    self.result.fail(f"{program.name} ended by itself: {program.tail()}")
                program.start()


def agent_at(fault: Fault) -> str | None:
    """The agent that cannot start during this fault, because its interface is deleted."""
    if fault.kind.name != "link deleted":
        return None
    return f"sender-{fault.target}" if fault.target in SENDERS else "switch"


def is_without_interface(log: str) -> bool:
    """Whether an agent ended because its interface was missing, according to its log since its start."""
    return WITHOUT_INTERFACE.search(log) is not None


def orphans(fault: Fault) -> frozenset[int]:
    """The long flows of a sender whose agent this fault ends."""
    sender = fault.target.removeprefix("sender-")
    if sender not in SENDERS or not fault.kind.ends_program:
        return frozenset()
    first = 1 + LONG_FLOWS * SENDERS.index(sender)
    return frozenset(range(first, first + LONG_FLOWS))
