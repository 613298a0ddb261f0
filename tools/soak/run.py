"""One soak: load, the scheduled faults, and the checks afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

import reports
from fairness import Disturbance, Figures, Sample, judge
from machine import Inventory, inventory
from network import RATE_MBIT, SENDERS, Network
from programs import FORGET_S, LONG_FLOWS, Program, Programs, wait
from schedule import AGENTS, CONTROLLERS, Fault

STEP_S = 0.05
START_S = 30.0
"""Time after its start within which a program must answer."""
WARM_S = 5.0
"""Time without load before the programs are measured, both before and after the load."""
GOODPUT_BPS = RATE_MBIT * 1e6 * 0.98 * 1448 / 1514
"""The payload that BRF allocates to all flows of the port: eta is 0.98, and headers take 66 bytes."""
LEAST_PART = 0.5
"""Smallest goodput of a flow in a window, as a part of its fair share."""
LONGEST_S = 10.0
"""Longest time for which a flow may have less than half of its fair share."""
LEAST_ORPHANED = 0.1
"""As `LEAST_PART`, for connections with CUBIC that are older than their sender's agent."""
SIGNALS = {
    "kill": signal.SIGKILL,
    "terminate": signal.SIGTERM,
    "pause": signal.SIGSTOP,
    "reload": signal.SIGHUP,
}
"""Signal of a fault, by the first word of its kind."""
GROWTH = {"descriptors": 4, "threads": 3, "children": 0, "memory_mib": 32.0}
"""Accepted growth of a program's usage from before the load to after it."""


@dataclass
class Open:
    """A fault that has begun and has not ended."""

    fault: Fault
    begin_s: float
    end_s: float
    """Time of the repair."""
    is_repaired: bool = False
    attacker: subprocess.Popen[bytes] | None = None


@dataclass
class Result:
    """The findings of a soak."""

    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    inventories: dict[str, Inventory] = field(default_factory=dict)
    """By phase: `before`, `idle`, `after`, `end`."""
    connections: Counter[str] = field(default_factory=Counter)
    """By outcome: `long`, `short`, `broken`, `refused`."""
    forged: Counter[str] = field(default_factory=Counter)
    """Forged packets by kind."""
    switch: Counter[str] = field(default_factory=Counter)
    """Counters of the controlled port."""

    def fail(self, text: str) -> None:
        """Adds a failure."""
        self.failures.append(text)
        print(f"soak: {text}", file=sys.stderr, flush=True)


class Soak:
    """One run. `close` ends its programs and removes its network."""

    def __init__(self, network: Network, programs: Programs, faults: list[Fault], seed: int) -> None:
        self.network, self.programs, self.seed = network, programs, seed
        self.result = Result()
        self.due = deque(faults)
        self.open: list[Open] = []
        self.disturbances: list[Disturbance] = []

    # The phases

    def start(self) -> None:
        """Starts agents and controllers without load, and measures them."""
        self.result.inventories["before"] = inventory(self.network.net)
        for program in self.programs.deployed.values():
            program.start()
        if not wait(lambda: all(p.answers() for p in self.programs.deployed.values()), START_S):
            raise RuntimeError(
                "; ".join(p.tail() for p in self.programs.deployed.values() if not p.answers())
            )
        self._check_controllers()
        time.sleep(WARM_S)
        for program in self.programs.deployed.values():
            program.idle = program.measure()
        self.result.inventories["idle"] = inventory(self.network.net)
        for program in self.programs.traffic.values():
            program.start()
            time.sleep(0.3)

    def load(self, seconds: float) -> None:
        """Causes the scheduled faults while flows start and end."""
        begin_s = time.monotonic()
        self.disturbances.append(Disturbance(begin_s, begin_s, "the start"))
        second_s = begin_s
        while (now_s := time.monotonic()) < begin_s + seconds:
            while self.due and begin_s + self.due[0].at_s <= now_s:
                self._begin(self.due.popleft(), now_s)
            self._repair(now_s)
            if now_s >= second_s:
                second_s += 1
                self._look(now_s - begin_s, seconds)
            time.sleep(STEP_S)
        self.result.seconds = time.monotonic() - begin_s

    def finish(self) -> None:
        """Repairs all faults, ends the load, and checks that it left no objects."""
        wait(lambda: self._repair(time.monotonic()) or not self.open, START_S)
        for sender in SENDERS:
            client = self.programs.traffic[f"client-{sender}"]
            client.stop()
            self.result.connections.update(reports.last(client.log))
        self.programs.traffic["forger"].stop()
        self.result.forged.update(reports.last(self.programs.traffic["forger"].log))
        if not wait(lambda: self._flows() == 0, 2 * START_S + FORGET_S):
            status = self.programs.status() or {}
            self.result.fail(f"the switch still has flows: {json.dumps(status.get('flows'))}")
        self.programs.traffic["server"].stop()
        self._check_controllers()
        self._check_switch()
        time.sleep(WARM_S)
        for program in self.programs.deployed.values():
            program.end = program.measure()
            for what, growth in GROWTH.items():
                before, after = (getattr(use, what) for use in (program.idle, program.end))
                if after > before + growth:
                    self.result.fail(
                        f"{program.name}: {after:.0f} {what} after the load, {before:.0f} before"
                    )
        self._compare("idle", "after")

    def end(self) -> None:
        """Stops agents and controllers with SIGTERM, and checks that no object remains."""
        for program in reversed(self.programs.deployed.values()):
            if not program.stop():
                self.result.fail(f"{program.name} does not end after SIGTERM")
        self.programs.clean().wait(60)
        self._compare("before", "end")
        self._judge()

    # Faults

    def _begin(self, fault: Fault, now_s: float) -> None:
        self.result.faults[str(fault)] += 1
        begun = Open(fault, now_s, now_s + fault.lasts_s)
        program = self.programs.deployed.get(fault.target)
        match fault.kind.name:
            case "link down":
                self.network.set_link(fault.target, "down")
            case "link deleted":
                self.network.disconnect(fault.target)
            case "clean":
                self.programs.clean()
            case "hostile bytes":
                begun.attacker = self.programs.pester(self.seed + self.result.faults.total())
            case kind if program is not None:
                guardian, itself = "guardian" in kind, kind != "kill guardian"
                program.send(SIGNALS[kind.split()[0]], guardian, itself)
        self.open.append(begun)

    def _repair(self, now_s: float) -> None:
        """Repairs the faults that are due. A fault has ended when its program answers again."""
        for begun in list(self.open):
            fault, program = begun.fault, self.programs.deployed.get(begun.fault.target)
            if now_s < begun.end_s:
                continue
            if not begun.is_repaired:
                begun.is_repaired = self._undo(begun, program)
            hangs = now_s > begun.end_s + START_S
            if hangs:
                self.result.fail(
                    f"{fault}: no answer for {START_S:.0f} s: {program.tail() if program else ''}"
                )
            if hangs or (begun.is_repaired and (program is None or program.answers())):
                self.open.remove(begun)
                if fault.kind.disturbs:
                    found = Disturbance(begun.begin_s, now_s, str(fault), orphans(fault))
                    self.disturbances.append(found)
        self._find_ended()

    def _undo(self, begun: Open, program: Program | None) -> bool:
        """Repairs a fault. Returns false if its program has not ended yet."""
        match begun.fault.kind.name:
            case "link down":
                self.network.set_link(begun.fault.target, "up")
            case "link deleted":
                self.network.connect(begun.fault.target)
            case "hostile bytes" if begun.attacker is not None:
                begun.attacker.terminate()
                begun.attacker.wait()
            case "pause" | "pause controller" if program is not None:
                program.send(signal.SIGCONT)
            case "kill" | "kill with guardian" | "kill controller" | "terminate" if program is not None:
                if program.pid is not None:
                    return False  # it has not ended yet
                program.start()
        return True

    def _find_ended(self) -> None:
        """Reports programs that ended without a fault, and restarts them."""
        broken = {begun.fault.target for begun in self.open if not begun.is_repaired}
        for program in (*self.programs.deployed.values(), *self.programs.traffic.values()):
            if program.process is not None and program.pid is None and program.name not in broken:
                self.result.fail(f"{program.name} ended by itself: {program.tail()}")
                program.start()

    # Checks

    def _look(self, at_s: float, seconds: float) -> None:
        for program in self.programs.deployed.values():
            program.measure()
        if int(at_s) % 10 == 0:
            flows = reports.last(self.programs.traffic["server"].log).get("open", 0)
            figures = f"{self.result.faults.total()} faults, {flows} connections"
            print(
                f"{at_s:5.0f} s of {seconds:.0f} s: {figures}, {len(self.result.failures)} failures",
                flush=True,
            )

    def _flows(self) -> int | None:
        status = self.programs.status()
        return None if status is None else int(status["flow_count"])

    def _check_controllers(self) -> None:
        if not wait(lambda: len(self.programs.active()) == 1, START_S):
            logs = "; ".join(self.programs.deployed[name].tail() for name in CONTROLLERS)
            self.result.fail(f"active controllers: {self.programs.active()}, expected one: {logs}")

    def _check_switch(self) -> None:
        status = self.programs.status() or {"ports": []}
        for port in status["ports"]:
            self.result.switch.update(dict(port["counters"]))
        for counter in ("no_slot", "refused"):
            if count := self.result.switch[counter]:
                self.result.fail(f"the switch had no slot for {count} packets ({counter})")
        for name in (*CONTROLLERS, *AGENTS):
            log = self.programs.deployed[name].log.read_text(errors="replace")
            for word in ("Traceback", "panicked"):
                if word in log:
                    self.result.fail(f"{name}: {word} in its log: {log[log.index(word) :][:2000]}")

    def _compare(self, before: str, after: str) -> None:
        """Waits until no kind of object has a larger count than before. Fails after `START_S`."""

        def left() -> dict[str, int]:
            now = self.result.inventories[after] = inventory(self.network.net)
            return {kind: n - old[kind] for kind, n in now.items() if n > old[kind]}

        old = self.result.inventories[before]
        if not wait(lambda: not left(), START_S):
            self.result.fail(f"objects that remain, compared with {before!r}: {left()}")

    def _judge(self) -> None:
        found = samples(self.programs.traffic["server"].log)
        flows = range(1, 1 + LONG_FLOWS * len(SENDERS))
        last_s = self.disturbances[0].begin_s + self.result.seconds
        within = [s for s in found if self.disturbances[0].begin_s <= s.at_s <= last_s]
        figures = self.result.figures = judge(within, self.disturbances, flows, GOODPUT_BPS)
        for worst, least in ((figures.rated, LEAST_PART), (figures.orphans, LEAST_ORPHANED)):
            if worst.least < least:
                part = f"{100 * worst.least:.0f} % of the fair share"
                self.result.fail(f"{part} in a window: {worst.least_where}")
        if (worst := figures.rated).longest_s > LONGEST_S:
            self.result.fail(f"{worst.longest_s:.1f} s below half of the share: {worst.longest_where}")
        if broken := self.result.connections["broken"]:
            self.result.fail(f"{broken} connections broke")

    def close(self) -> None:
        """Ends all programs, and removes the network and the data plane."""
        for program in (*self.programs.traffic.values(), *self.programs.deployed.values()):
            program.stop(patience_s=5)
        self.programs.clean().wait(60)
        self.network.close()


def orphans(fault: Fault) -> frozenset[int]:
    """The long flows whose sender's agent is ended by this fault."""
    if not fault.target.startswith("sender-") or fault.kind.name.startswith("pause"):
        return frozenset()
    first = 1 + LONG_FLOWS * SENDERS.index(fault.target.removeprefix("sender-"))
    return frozenset(range(first, first + LONG_FLOWS))


def samples(path: Path) -> list[Sample]:
    """The receiver's reports."""
    return [
        Sample(
            one["at_s"],
            one["open"],
            {int(flow): count for flow, count in one["received"].items()},
            {int(flow): at_s for flow, at_s in one["since_s"].items()},
        )
        for one in reports.every(path)
    ]
