"""One soak: its phases, and the checks."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from pathlib import Path

import reports
from fairness import Disturbance, Sample, judge
from faults import Faults
from machine import inventory
from narrows.errors import NarrowsError
from network import RATE_MBIT, SENDERS, Network
from programs import FORGET_S, LONG_FLOWS, START_S, Programs, wait
from result import Result
from schedule import AGENTS, CONTROLLERS, Fault

STEP_S = 0.05
WARM_S = 5.0
"""The programs are measured after this time without load: once before the load, and once after it."""
GOODPUT_BPS = RATE_MBIT * 1e6 * 0.98 * 1448 / 1514
"""The payload rate that BRF allocates to all flows together: eta is 0.98, and headers take 66 bytes."""
LEAST_PART = 0.5
"""Smallest accepted goodput of a flow in a window, as a part of its fair share."""
LONGEST_S = 10.0
"""Longest accepted time during which a flow has less than half of its fair share."""
LEAST_ORPHANED = 0.1
"""Like `LEAST_PART`, for connections that are older than their sender's agent and use CUBIC."""
GROWTH = {"descriptors": 4, "threads": 3, "children": 0, "memory_mib": 32.0}
"""Accepted growth of a program's resources during the load."""


class Soak:
    """One run. `close` ends its programs and removes its network."""

    def __init__(self, network: Network, programs: Programs, faults: list[Fault], seed: int) -> None:
        self.network, self.programs = network, programs
        self.result = Result()
        self.due = deque(faults)
        self.faults = Faults(network, programs, seed, self.result)
        self.begin_s = 0.0

    def start(self) -> None:
        """Starts agents and controllers, measures them without load, and starts the traffic."""
        self.result.inventories["before"] = inventory(self.network.net)
        for program in self.programs.deployed.values():
            program.start()
        if not wait(lambda: all(p.answers() for p in self.programs.deployed.values()), START_S):
            late = "; ".join(p.tail() for p in self.programs.deployed.values() if not p.answers())
            raise NarrowsError(f"no answer {START_S:.0f} s after the start: {late}")
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
        self.begin_s = second_s = time.monotonic()
        while (now_s := time.monotonic()) < self.begin_s + seconds:
            while self.due and self.begin_s + self.due[0].at_s <= now_s:
                fault = self.due.popleft()
                if fault.target == "switch" and fault.kind.ends_program:
                    self._check_slots()
                self.faults.begin(fault)
            self.faults.repair()
            if now_s >= second_s:
                second_s += 1
                self._look(now_s - self.begin_s, seconds)
            time.sleep(STEP_S)
        self.result.seconds = time.monotonic() - self.begin_s

    def finish(self) -> None:
        """Repairs all faults, ends the load, and checks that the load left no objects."""
        wait(self._is_repaired, 2 * START_S)
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
        self._check_slots()
        self._check_logs()
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

    def _is_repaired(self) -> bool:
        self.faults.repair()
        return not self.faults.open

    def _flows(self) -> int | None:
        status = self.programs.status()
        return None if status is None else int(status["flow_count"])

    def _check_controllers(self) -> None:
        if not wait(lambda: len(self.programs.active()) == 1, START_S):
            logs = "; ".join(self.programs.deployed[name].tail() for name in CONTROLLERS)
            self.result.fail(f"active controllers: {self.programs.active()}, expected one: {logs}")

    def _check_slots(self) -> None:
        """Checks by the data plane's counters that each packet's flow had a slot in the flow table."""
        status = self.programs.status() or {"ports": []}
        self.result.switch = Counter()
        for port in status["ports"]:
            self.result.switch.update(dict(port["counters"]))
        for counter in ("no_slot", "refused"):
            if count := self.result.switch[counter]:
                self.result.fail(f"the switch had no slot for {count} packets ({counter})")

    def _check_logs(self) -> None:
        for name in (*CONTROLLERS, *AGENTS):
            log = self.programs.deployed[name].log.read_text(errors="replace")
            for word in ("Traceback", "panicked"):
                if word in log:
                    self.result.fail(f"{name}: {word} in its log: {log[log.index(word) :][:2000]}")

    def _compare(self, before: str, after: str) -> None:
        """Waits until no kind has more objects than in the phase `before`.

        Adds a failure if this takes longer than `START_S`.
        """

        def left() -> dict[str, int]:
            now = self.result.inventories[after] = inventory(self.network.net)
            return {kind: n - old[kind] for kind, n in now.items() if n > old[kind]}

        old = self.result.inventories[before]
        if not wait(lambda: not left(), START_S):
            self.result.fail(f"objects that remain, compared with {before!r}: {left()}")

    def _judge(self) -> None:
        found = samples(self.programs.traffic["server"].log)
        flows = range(1, 1 + LONG_FLOWS * len(SENDERS))
        within = [s for s in found if 0 <= s.at_s - self.begin_s <= self.result.seconds]
        faults = [Disturbance(self.begin_s, self.begin_s, "the start"), *self.faults.disturbances]
        figures = self.result.figures = judge(within, faults, flows, GOODPUT_BPS)
        if not figures.rated.windows:
            self.result.fail(
                "no window could be judged: too short a soak, too many faults, or too busy a machine"
            )
        for worst, least, which in (
            (figures.rated, LEAST_PART, ""),
            (figures.orphans, LEAST_ORPHANED, ", older than its sender's agent"),
        ):
            if worst.least < least:
                part = f"{100 * worst.least:.0f} % of the fair share"
                self.result.fail(f"{part} in a window: {worst.least_where}{which}")
        if (worst := figures.rated).longest_s > LONGEST_S:
            self.result.fail(f"{worst.longest_s:.1f} s below half of the fair share: {worst.longest_where}")
        if broken := self.result.connections["broken"]:
            self.result.fail(f"{broken} connections broke")

    def close(self) -> None:
        """Ends all programs, and removes the network and the data plane."""
        for program in (*self.programs.traffic.values(), *self.programs.deployed.values()):
            program.stop(patience_s=5)
        self.programs.clean().wait(60)
        self.network.close()


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
