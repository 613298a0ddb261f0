"""One run, as the formats need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows.packets import MSS
from narrows.results.runs import Run

Floats = NDArray[np.float64]
UDP = "udp"
"""Controller of a flow without a window."""


@dataclass(frozen=True)
class Flow:
    """A flow with its samples."""

    row: int
    """Row of the table `flows`."""
    name: str
    cc: str
    start_s: float
    end_s: float
    """End of the flow; NaN if the run ended first."""
    is_tcp: bool
    segment_bytes: int
    """Payload of a full segment."""


@dataclass(frozen=True)
class Exported:
    """A run of a folder of results."""

    number: int
    run: Run
    scenario: Mapping[str, Any]
    """The scenario with all defaults."""
    date_s: float
    """When the results were written, in seconds of Unix time."""

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.scenario.get("name", "scenario"))

    def flows(self) -> list[Flow]:
        """The flows that have samples, by number."""
        run = self.run
        sampled = set(run.column("flow_samples", "flow").tolist())
        entries = {entry.get("name"): entry for entry in self.scenario.get("flows", [])}
        names, controllers, sources = (run.names("flows", key) for key in ("name", "cc", "source"))
        start, end = (run.column("flows", key) for key in ("start_s", "end_s"))
        found = []
        for flow, row in sorted((flow, row) for row, flow in enumerate(run.column("flows", "flow").tolist())):
            if flow not in sampled:
                continue
            entry = entries.get(sources[row], {})
            is_tcp = controllers[row] != UDP and entry.get("transport", "tcp") == "tcp"
            found.append(
                Flow(
                    row,
                    names[row],
                    controllers[row],
                    float(start[row]),
                    float(end[row]),
                    is_tcp,
                    int(entry.get("mss", MSS)),
                )
            )
        return found

    def links(self) -> list[tuple[int, str]]:
        """Rows of the table `links`, and names, of the links that have samples."""
        sampled = set(self.run.column("link_samples", "link").tolist())
        numbers, names = self.run.column("links", "link").tolist(), self.run.names("links", "name")
        return [(row, names[row]) for row, number in enumerate(numbers) if number in sampled]

    def duration_s(self) -> float:
        """The time of the last sample; 0 without samples."""
        times = (self.run.column(table, "t_s") for table in ("flow_samples", "link_samples"))
        return max((float(of_table.max()) for of_table in times if of_table.size), default=0.0)


def starts(ends: Floats) -> Floats:
    """The beginning of each interval, from the ends of consecutive intervals.

    The first interval is as long as the second. An interval cannot begin before 0.
    """
    if ends.size < 2:
        return np.zeros_like(ends)
    first = max(ends[0] - (ends[1] - ends[0]), 0.0)
    return np.concatenate(([first], ends[:-1]))


def finite(times: Floats, values: Floats) -> Iterator[tuple[float, float]]:
    """Pairs of a time and a value, without NaN and infinite values, which JSON lacks."""
    for time, value in zip(times.tolist(), values.tolist(), strict=True):
        if np.isfinite(value):
            yield time, value
