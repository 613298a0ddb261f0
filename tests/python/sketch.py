"""A backend that invents plausible results instead of simulating.

Tests of studies and reports use this backend, because it is fast and needs no native module. Users must never
see its numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from narrows.backends import Output

QUANTILES = np.linspace(0.0, 1.0, 101)
KEPT_UNDER_LOSS = {"cubic": lambda p: min(1.0, 0.0085 / math.sqrt(p) * 0.8), "bbr": lambda p: (1 - p) * 0.96}


class Sketch:
    """Makes random tables for any plan."""

    name = "sketch"
    most_jobs: int | None = None

    def cancel(self) -> None:
        """Does nothing, because all runs are short."""

    def facts(self) -> dict[str, Any]:
        return {}

    def check(self, plan: Any) -> None:
        """Accepts any plan."""

    def congestion_controllers(self) -> list[tuple[str, str]]:
        return [(name, "") for name in ("cubic", "bbr", "brf", "brf-literal", "reno")]

    def rate_controllers(self) -> list[tuple[str, str]]:
        return [("brf", "")]

    def run(self, plan: Any) -> Output:
        """Tables of a run."""
        return _Drawing(plan).output()


class _Drawing:
    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self.random = np.random.default_rng(plan["seed"])
        self.end = plan["duration"] / 1e9
        step = plan["probes"]["interval"] / 1e9
        self.t = np.arange(1, int(self.end / step + 1e-9) + 1) * step
        self.flows = [
            {
                "cc": f["transport"]["cc"].removesuffix("-literal"),
                "name": f["name"] + (f".{i}" if f["count"] > 1 else ""),
                "source": f["name"],
                # Flows with a size start 4 s later, because measures leave out the first 3 s.
                "start": (f["start"] + i * f["spacing"]) / 1e9 + (4.0 if "size" in f["app"] else 0.0),
                "ends": "size" in f["app"],
            }
            for f in plan["flows"]
            for i in range(f["count"])
        ]
        self.tight = min(range(len(plan["links"])), key=lambda i: self._rate(i).mean())
        self.capacity = self._rate(self.tight)
        loss = plan["links"][self.tight]["loss"]
        self.loss = loss[0][1]["p"] if loss else 0.0
        self.rtt = 0.0202
        limit = plan["links"][self.tight]["queue"]["limit"]["packets"] or 1000
        self.full_ms = min(300.0, limit * 1500 * 8 / self.capacity.mean() * 1e3)

    def _rate(self, link: int) -> Any:
        rate = self.plan["links"][link]["rate"]
        if rate["kind"] == "steps":
            times = np.array([step[0] / 1e9 for step in rate["steps"]])
            rates = np.array([step[1] * 8.0 for step in rate["steps"]])
            return rates[
                np.maximum(np.searchsorted(times, self.t % max(times[-1], 1e-9), side="right") - 1, 0)
            ]
        millis = np.array(rate["millis"]) / 1e3
        counts, _ = np.histogram(millis, bins=np.concatenate([[0.0], self.t]))
        return np.maximum(counts, 1) * rate["bytes"] * 8.0 / (self.t[0])

    def _queue_ms(self, cc: str) -> Any:
        if cc == "cubic":
            phase = (self.t / 7.0 + self.random.random()) % 1.0
            return self.full_ms * (0.7 + 0.3 * (1 - (1 - phase) ** 3))
        if cc == "bbr":
            return 4 + 14 * ((self.t + self.random.random()) % 0.6 < 0.2) * (self.t % 10 > 0.3)
        return 0.1 + 0.1 * self.random.random(self.t.size)

    def events(self) -> dict[str, Any]:
        """Each port changes its state forty times in a run."""
        states = ["state-measure", "state-alloc", "state-settle", "state-congestion"]
        times = [self.end * i / 40 for i in range(40)]
        names = [link["name"] for link in self.plan["links"]]
        return {
            "t_s": times * len(names),
            "kind": [states[i % len(states)] for _ in names for i in range(len(times))],
            "entity": [name for name in names for _ in times],
            "value": [0.0] * len(times) * len(names),
        }

    def output(self) -> dict[str, Any]:
        """All tables of the run."""
        begins = np.array([flow["start"] for flow in self.flows])
        active = begins[:, None] < self.t[None, :]
        lag = np.array([{"brf": 0.01, "bbr": 1.4, "cubic": 0.7}.get(flow["cc"], 1.0) for flow in self.flows])
        weight = (
            np.array([{"bbr": 2.2, "cubic": 1.0}.get(f["cc"], 1.0) for f in self.flows])
            if not self.plan["rate_controllers"]
            else np.ones(len(self.flows))
        )
        grown = np.where(
            active, 1 - np.exp(-np.maximum(self.t[None, :] - begins[:, None] + 0.02, 0) / lag[:, None]), 0.0
        )
        noise = 1 + 0.06 * self.random.standard_normal((len(self.flows), self.t.size)) * (lag[:, None] > 0.1)
        demand = grown * weight[:, None] * np.abs(noise)
        used = 0.98 if self.plan["rate_controllers"] else 0.97
        kept = KEPT_UNDER_LOSS.get(self.flows[0]["cc"], lambda p: 1 - p)(self.loss) if self.loss else 1.0
        rates = demand / np.maximum(demand.sum(axis=0), 1e-9) * self.capacity * used * kept * 1448 / 1500
        queue = self._queue_ms(self.flows[0]["cc"])
        return {
            "flows": self._flows(rates, queue),
            "flow_samples": self._flow_samples(rates, queue, active),
            "links": self._links(rates, queue),
            "link_samples": self._link_samples(rates, queue),
            "distributions": self._distributions(queue),
            "events": self.events(),
            "run": {
                "events": 1000,
                "packet_hops": 5000,
                "delivered_packets": 2500,
                "peak_flows": len(self.flows),
            },
        }

    def _flows(self, rates: Any, queue: Any) -> dict[str, Any]:
        n = len(self.flows)
        inside = self.t > 0.1 * self.end
        nan = np.full(n, math.nan)
        rtt = self.rtt + queue / 1e3
        begins = np.array([flow["start"] for flow in self.flows])
        mean = np.array([rates[i, inside & (self.t > begins[i])].mean() for i in range(n)])
        ends = np.array([flow["ends"] for flow in self.flows])
        return {
            "flow": np.arange(n),
            "name": [f["name"] for f in self.flows],
            "cc": [f["cc"] for f in self.flows],
            "source": [f["source"] for f in self.flows],
            "from": ["S1"] * n,
            "to": ["C1"] * n,
            "start_s": begins,
            "end_s": nan,
            "size_bytes": np.zeros(n),
            "fct_s": np.where(ends, 0.12, math.nan),
            "fct_recv_s": nan,
            "ideal_fct_s": np.where(ends, 0.1, math.nan),
            "rtt_empty_s": np.full(n, self.rtt),
            "delivered_bytes": (mean * self.end / 8).astype(np.uint64),
            "goodput_bps": mean,
            "sent_packets": np.full(n, 500_000),
            "retransmits": np.full(n, int(500_000 * self.loss)),
            "spurious": np.zeros(n),
            "timeouts": np.zeros(n),
            "rtt_mean_s": np.full(n, rtt.mean()),
            "min_rtt_s": np.full(n, rtt.min()),
            "rtt_jitter_s": np.full(n, 1e-4),
            **{f"rtt_p{q}_s": np.full(n, np.quantile(rtt, q / 100)) for q in (50, 95, 99)},
            "rtt_max_s": np.full(n, rtt.max()),
            "delay_mean_s": np.full(n, rtt.mean() - self.rtt / 2),
        }

    def _flow_samples(self, rates: Any, queue: Any, active: Any) -> dict[str, Any]:
        n, k = rates.shape
        rtt = np.tile(self.rtt + queue / 1e3, n)
        goodput = np.where(active, rates, math.nan).ravel()
        return {
            "t_s": np.tile(self.t, n),
            "flow": np.repeat(np.arange(n), k),
            "goodput_bps": goodput,
            "send_bps": goodput * 1.036,
            "cwnd": np.nan_to_num(goodput) * rtt / 8 / 1448,
            "ssthresh": np.full(n * k, math.nan),
            "pacing_bps": goodput,
            "srtt_s": rtt,
            "rtt_s": rtt,
            "in_flight": np.nan_to_num(goodput) * rtt / 8 / 1448,
            "retransmits": np.zeros(n * k),
            "allocation_bps": np.full(n * k, math.nan),
            "state": np.zeros(n * k),
        }

    def _links(self, rates: Any, queue: Any) -> dict[str, Any]:
        n = len(self.plan["links"])
        dropped = np.zeros(n)
        if self.flows[0]["cc"] != "brf":
            dropped[self.tight] = int(3000 / math.sqrt(self.full_ms))
        capacity = np.array([self._rate(i).mean() for i in range(n)])
        through = rates.sum(axis=0).mean() * 1500 / 1448
        sojourn = np.where(np.arange(n) == self.tight, queue.mean() / 1e3, 0.0)
        return {
            "link": np.arange(n),
            "name": [link["name"] for link in self.plan["links"]],
            "capacity_bps": capacity,
            "utilisation": through / capacity,
            "throughput_bps": np.full(n, through),
            "offered_packets": np.full(n, 500_000),
            "dropped_packets": dropped,
            "drop_rate": dropped / 500_000,
            "random_losses": np.zeros(n),
            "marks": np.zeros(n),
            **{f"sojourn_{q}_s": sojourn for q in ("mean", "p50", "p95", "p99", "max")},
            "backlog_mean_packets": sojourn * capacity / 12000,
        }

    def _link_samples(self, rates: Any, queue: Any) -> dict[str, Any]:
        links = self.plan["probes"]["links"]
        k = self.t.size
        through = rates.sum(axis=0) * 1500 / 1448
        parts = [np.ones(k) if link == self.tight else np.zeros(k) for link in links]
        zeros = np.zeros(k * len(links))
        packets = np.concatenate([queue / 1e3 * self.capacity / 12000 * part for part in parts])
        return {
            "t_s": np.tile(self.t, len(links)),
            "link": np.repeat(links, k),
            "throughput_bps": np.tile(through, len(links)),
            "capacity_bps": np.concatenate([self._rate(link) for link in links]),
            "queue_packets": packets,
            "queue_bytes": packets * 1500,
            "drops": zeros,
            "marks": zeros,
            "random_losses": zeros,
        }

    def _distributions(self, queue: Any) -> dict[str, Any]:
        n = len(self.flows)
        values = np.quantile(self.rtt + queue / 1e3, QUANTILES)
        return {
            "entity": ["flow"] * n * 101,
            "id": np.repeat(np.arange(n), 101),
            "quantity": ["rtt"] * n * 101,
            "quantile": np.tile(QUANTILES, n),
            "value_s": np.tile(values, n),
        }
