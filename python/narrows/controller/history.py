"""Stores the last hour of each port's rates, queue and number of flows, in bounded memory.

The intervals are the same for all ports, so a series is a ring buffer of numbers without times. For a rate,
the value of an interval is the mean. For a queue, the value is the maximum, because a queue that lasts only
a short time would disappear in a mean.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

from narrows.controller.sample import PortSample, Sample
from narrows.units import NANOS_PER_SEC as SECOND

STEP_S = 5
POINTS = 3600 // STEP_S
PORTS_MAX = 1024
"""Maximum number of ports. The series of this many ports take 15 MB, with 4 bytes per value."""
SERIES = {"tx_bps": 0, "rx_bps": 0, "flows_bps": 0, "queue_s": 6, "flows": 1}
"""Names of the series, and the number of decimal places of the values that `read` returns."""
_QUEUE = list(SERIES).index("queue_s")
_NAN = float("nan")


def _values(port: PortSample) -> tuple[float | None, ...]:
    has_agent = port.agent is not None
    return (
        port.tx_bps,
        port.rx_bps,
        port.flows_bps if has_agent else None,
        port.queue_s,
        len(port.flows) if has_agent else None,
    )


class _Interval:
    """Sums and maxima of the current interval of a port."""

    __slots__ = ("_counts", "_sums", "_worst")

    def __init__(self) -> None:
        self._sums, self._counts, self._worst = [0.0] * len(SERIES), [0] * len(SERIES), _NAN

    def add(self, values: Iterable[float | None]) -> None:
        for number, value in enumerate(values):
            if value is None:
                continue
            self._sums[number] += value
            self._counts[number] += 1
            if number == _QUEUE and not value <= self._worst:
                self._worst = value

    def end(self) -> list[float]:
        """One value for each series (NaN: the series has no values in the interval)."""
        means = [s / n if n else _NAN for s, n in zip(self._sums, self._counts, strict=True)]
        means[_QUEUE] = self._worst
        return means


class _Port:
    """The ring buffers of a port."""

    __slots__ = ("interval", "rings", "seen")

    def __init__(self) -> None:
        self.rings = [array("f", [_NAN]) * POINTS for _ in SERIES]
        self.interval = _Interval()
        self.seen = 0
        """Number of the latest interval in which the port had a value."""


class History:
    """The series of all ports.

    Args:
        now_ns: monotonic time of the start.
    """

    def __init__(self, now_ns: int) -> None:
        self._start_ns = now_ns
        self.number = 0
        """Number of the current interval. The ring buffers have the results of earlier intervals."""
        self._ports: dict[str, _Port] = {}
        self.left_out = 0
        """Number of ports in the last sample that have no history, because there are more than `PORTS_MAX`
        ports."""

    def __len__(self) -> int:
        return len(self._ports)

    def add(self, now_ns: int, sample: Sample) -> None:
        """Ends the intervals that are over, and adds the values of all ports to the current interval."""
        number = (now_ns - self._start_ns) // (STEP_S * SECOND)
        if number > self.number:
            self._end(number)
        self.left_out = 0
        for port in sample.ports:
            own = self._ports.get(port.id)
            if own is None and self.left_out == 0:
                own = self._new(port.id)
            if own is None:
                self.left_out += 1
                continue
            own.seen = self.number
            own.interval.add(_values(port))

    def read(self, port: str, after: int) -> tuple[int, dict[str, list[float | None]]] | None:
        """The number of the first returned interval, and the values of each series from that interval on.

        Args:
            port: identifier of the port. The result for an unknown port is None.
            after: number of an interval. Only later intervals are returned.
        """
        own = self._ports.get(port)
        if own is None:
            return None
        first = max(after + 1, self.number - POINTS, 0)
        at = [number % POINTS for number in range(first, self.number)]
        series = {
            name: [None if math.isnan(ring[i]) else round(ring[i], places) for i in at]
            for (name, places), ring in zip(SERIES.items(), own.rings, strict=True)
        }
        return first, series

    def end_s(self, now_ns: int, unix_s: float) -> float:
        """Unix time of the end of the last complete interval."""
        return unix_s - (now_ns - self._start_ns - self.number * STEP_S * SECOND) / SECOND

    def _end(self, number: int) -> None:
        # If the machine paused, several intervals have no values. Clear their slots, but at most the whole
        # buffer.
        gap = range(max(self.number + 1, number - POINTS), number)
        for name, port in list(self._ports.items()):
            if number - port.seen > POINTS:
                del self._ports[name]
                continue
            for ring, value in zip(port.rings, port.interval.end(), strict=True):
                ring[self.number % POINTS] = value
                for missed in gap:
                    ring[missed % POINTS] = _NAN
            port.interval = _Interval()
        self.number = number

    def _new(self, name: str) -> _Port | None:
        if len(self._ports) >= PORTS_MAX:
            # The port that has been absent for the longest time is removed. Present ports are never removed.
            oldest = min(self._ports, key=lambda name: self._ports[name].seen)
            if self._ports[oldest].seen >= self.number - 1:
                return None
            del self._ports[oldest]
        self._ports[name] = port = _Port()
        return port
