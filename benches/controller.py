"""Measures the controller's CPU time for the messages of 16 agents with 2,500 flows in all.

    python benches/controller.py

Each agent has one port. It reports the state of its port every 20 ms under BRF and every 10 ms under PACEC.
Once a second, it sends the list of its flows. Under PACEC, it also sends a flow change for each flow. A
quarter of the ports is congested half of the time.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable

from narrows.controller.domain import Domain, Params
from narrows.controller.messages import AgentMessage, AgentUp, Effect

PORTS, FLOWS, SECONDS = 16, 2_500, 5
MS, SECOND = 1_000_000, 1_000_000_000
THRESHOLDS = {
    "mode": "resolved",
    "u_th": 0.98,
    "q_th": 0.1,
    "q_delay_max": 5_000_000,
    "q_packets_min": 5,
    "burst_threshold": 1.02,
    "packet": 1500,
}


def ports(kind: str, number: int) -> dict[str, object]:
    """The description of an agent's port."""
    info: dict[str, object] = {
        "port": 1,
        "interface": f"eth{number}",
        "ifindex": 1,
        "mac": f"02:00:00:00:00:{number:02x}",
        "mtu": 1500,
        "capacity": 12_500_000,
        "rate_controller": kind,
    }
    info |= {"thresholds": THRESHOLDS} if kind == "brf" else {"params": {"signal": "in-band"}}
    return {"type": "ports", "ports": [info]}


def report(now_ns: int, queued: int) -> dict[str, object]:
    """A report of a port at half load."""
    return {
        "type": "report",
        "port": 1,
        "at": now_ns,
        "capacity": 12_500_000,
        "rated_share": 12_250_000,
        "rated_arrived": now_ns // 160,
        "rated_departed": now_ns // 160,
        "departed": now_ns // 160,
        "queued": queued,
        "departed_packets": now_ns // 240_000,
        "rated_queued": queued,
        "rated_packets": [queued // 1500, 1000],
        "all_packets": [queued // 1500, 3000],
        "period": 20 * MS,
    }


def flow(number: int, sport: int) -> dict[str, object]:
    """A flow at a port."""
    saddr = f"10.0.{number}.{sport % 250}"
    key = {"saddr": saddr, "daddr": "10.9.0.1", "sport": sport, "dport": 80, "proto": "tcp"}
    own = {"class": "rated", "leaf": "elephant", "allocation": 100_000, "rate": 90_000, "rtt": 20 * MS}
    return {"key": key, **own}


class Bench:
    """A controller's domain, and the CPU time that it spends on each type of message."""

    def __init__(self, kind: str) -> None:
        self.kind, self.now_ns = kind, SECOND
        self.domain = Domain(0, Params(hold_ns=0))
        self.spent_ns: dict[str, int] = defaultdict(int)
        self.count: dict[str, int] = defaultdict(int)

    def time(self, what: str, step: Callable[[], list[Effect]]) -> None:
        """Runs a step, and adds its CPU time to the total of the message type `what`."""
        start_ns = time.process_time_ns()
        step()
        self.spent_ns[what] += time.process_time_ns() - start_ns
        self.count[what] += 1

    def say(self, number: int, body: dict[str, object]) -> None:
        """Passes an agent's message to the domain."""
        event = AgentMessage(f"a{number}", json.dumps(body, separators=(",", ":")))
        self.time(str(body["type"]), lambda: self.domain.handle(self.now_ns, event))

    def run(self) -> None:
        """Passes to the domain all messages that the agents send in `SECONDS` seconds."""
        for number in range(PORTS):
            self.domain.handle(self.now_ns, AgentUp(f"a{number}", "127.0.0.1:1"))
            self.say(number, ports(self.kind, number))
        every_ms = 20 if self.kind == "brf" else 10
        flows = [[flow(number, sport) for sport in range(FLOWS // PORTS)] for number in range(PORTS)]
        changes = [[{"key": one["key"], "begun": True, "demand": None} for one in own] for own in flows]
        for ms in range(0, 1000 * SECONDS, every_ms):
            self.now_ns = SECOND + ms * MS
            for number in range(PORTS):
                self.say(number, report(self.now_ns, 100_000 if number % 4 == 0 and ms // 500 % 2 else 0))
                if ms % 1000 == every_ms * (number % 5):
                    self.say(number, {"type": "flows", "port": 1, "flows": flows[number]})
                    if self.kind == "pacec":
                        self.say(number, {"type": "flow-changes", "port": 1, "changes": changes[number]})
            self.time("tick", lambda: self.domain.tick(self.now_ns))


def main() -> None:
    """Prints the CPU time for each type of message."""
    for kind in ("brf", "pacec"):
        bench = Bench(kind)
        bench.run()
        print(f"{kind}: {sum(bench.spent_ns.values()) / 1e6 / SECONDS:.1f} ms of CPU time per second")
        for what, spent_ns in bench.spent_ns.items():
            print(f"  {what:<12} {spent_ns / 1000 / bench.count[what]:8.1f} µs")


if __name__ == "__main__":
    main()
