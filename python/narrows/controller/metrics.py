"""The controller's metrics for Prometheus.

No metric describes a single flow, so the number of metrics is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from narrows import _native
from narrows.controller import sample, view
from narrows.controller.domain import Domain
from narrows.controller.runtime import Runtime
from narrows.controller.watch import Watch

CONTENT_TYPE = CONTENT_TYPE_LATEST
_Read = tuple[sample.Sample, list[view.CongestionState], dict[str, int]]
_PREFIX = "narrows_controller_"


def page(runtime: Runtime, watch: Watch) -> bytes:
    """The page with all metrics, in the format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Collector(runtime, watch))
    return generate_latest(registry)


class _Collector:
    def __init__(self, runtime: Runtime, watch: Watch) -> None:
        self._runtime, self._watch = runtime, watch

    def describe(self) -> list[Metric]:
        """Returns nothing.

        If this method did not exist, the registry would call `collect` to find the names of the metrics.
        """
        return []

    def collect(self) -> Iterator[Metric]:
        """The current values of all metrics."""

        def read(domain: Domain, now_ns: int) -> _Read:
            counts = {
                "switches": len(domain.topology.switches),
                "links": len(domain.topology.links()),
                "hosts": len(domain.hosts.by_mac),
                "agents": len(domain.agents.by_name),
            }
            return sample.take(domain, now_ns), view.congestion(domain, now_ns), counts

        taken, states, counts = self._runtime.look(read)
        info = {"name": self._runtime.name, "version": _native.version}
        yield InfoMetricFamily(_PREFIX.rstrip("_"), "Name and version of the controller.", info)
        yield GaugeMetricFamily(f"{_PREFIX}uptime_seconds", "Time since the start.", self._runtime.uptime_s())
        yield GaugeMetricFamily(
            f"{_PREFIX}active",
            "1 for the active controller, 0 for a standby.",
            float(self._runtime.is_active()),
        )
        for name, value in counts.items():
            yield GaugeMetricFamily(f"{_PREFIX}{name}", f"Known or connected {name}.", value)
        yield GaugeMetricFamily(
            f"{_PREFIX}history_ports", "Ports whose last hour is kept.", self._watch.recording().ports
        )
        alerts = self._watch.alerts()
        yield GaugeMetricFamily(
            f"{_PREFIX}alerts", "Alerts that have begun and not ended.", len(alerts.active)
        )
        failing = GaugeMetricFamily(
            f"{_PREFIX}alertmanager_failing", "1 if the last request failed, else 0.", labels=["url"]
        )
        for receiver in alerts.receivers:
            failing.add_metric([receiver.url], float(receiver.error is not None))
        yield failing
        silent = GaugeMetricFamily(
            f"{_PREFIX}agent_silent_seconds", "Time since the last message of an agent.", labels=["agent"]
        )
        for agent, seconds in taken.silent_s.items():
            silent.add_metric([agent], seconds)
        yield silent
        yield from _ports(taken)
        yield _congested(states)


def _per_byte(bps: float | None) -> float | None:
    return None if bps is None else bps / 8


_PORT: dict[str, tuple[str, Callable[[sample.PortSample], float | None]]] = {
    "transmit_bytes_per_second": (
        "Rate sent, L2, from the switch's counters.",
        lambda port: _per_byte(port.tx_bps),
    ),
    "receive_bytes_per_second": (
        "Rate received, L2, from the switch's counters.",
        lambda port: _per_byte(port.rx_bps),
    ),
    "capacity_bytes_per_second": ("Capacity of the port.", lambda port: _per_byte(port.capacity_bps)),
    "flows_bytes_per_second": (
        "Sum of the rates of the flows, L3.",
        lambda port: None if port.agent is None else port.flows_bps / 8,
    ),
    "flows": ("Flows at the port.", lambda port: None if port.agent is None else len(port.flows)),
    "queue_bytes": ("Queue of the rated class, L3.", lambda port: port.queued_bytes),
    "queue_seconds": ("Queueing delay at the rate of the link.", lambda port: port.queue_s),
}


def _ports(taken: sample.Sample) -> Iterator[Metric]:
    for name, (text, value) in _PORT.items():
        family = GaugeMetricFamily(f"{_PREFIX}port_{name}", text, labels=["port", "agent", "interface"])
        for port in taken.ports:
            if (number := value(port)) is not None:
                family.add_metric([port.id, port.agent or "", port.interface], number)
        yield family


def _congested(states: list[view.CongestionState]) -> Metric:
    family = GaugeMetricFamily(
        f"{_PREFIX}port_congested",
        "1 while the port has congestion of this kind (queue or burst), else 0.",
        labels=["port", "agent", "interface", "kind"],
    )
    for state in states:
        for kind in ("queue", "burst"):
            family.add_metric([state.key, state.agent, state.interface, kind], float(state.kind == kind))
    return family
