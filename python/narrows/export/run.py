"""Reads one run in the form that the export formats need."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows import stacks, units
from narrows.packets import MSS
from narrows.results.runs import Run

Floats = NDArray[np.float64]
UDP = "udp"
"""Value of the column `controller` for a UDP flow, which has no congestion window."""


@dataclass(frozen=True)
class Flow:
    """A flow with its samples."""

    row: int
    """Number of the flow's row in the table `flows`."""
    name: str
    cc: str
    start_s: float
    end_s: float
    """Time at which the flow ended (NaN: the run ended before the flow)."""
    segment_bytes: int
    """Payload of a full segment, bytes."""

    @property
    def is_tcp(self) -> bool:
        """Whether the flow is neither UDP nor QUIC.

        The name of a QUIC flow's controller begins with the name of the stack.
        """
        return self.cc != UDP and self.cc.split(":")[0] not in stacks.controllers()

    def end(self, run_end_s: float) -> float:
        """The end of the flow or of the run."""
        return run_end_s if math.isnan(self.end_s) else self.end_s


@dataclass(frozen=True)
class Exported:
    """One run of a folder of results, with the data that the export formats need."""

    number: int
    run: Run
    scenario: Mapping[str, Any]
    """The scenario with all defaults, and with the segment sizes (`mss`) of this run."""
    entries: Sequence[str]
    """Names of the scenario's `flows` entries."""
    date_s: float
    """Unix time at which the results were written, in seconds."""

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.scenario["name"])

    @property
    def interval_s(self) -> float:
        """Time between two samples."""
        return units.parse_duration(self.scenario["probes"]["interval"]) / 1e9

    def flows(self) -> list[Flow]:
        """The flows that have samples, by number."""
        run = self.run
        sampled = set(run.column("flow_samples", "flow").tolist())
        names, controllers, sources = (run.names("flows", key) for key in ("name", "cc", "source"))
        start, end = (run.column("flows", key).tolist() for key in ("start_s", "end_s"))
        numbers = run.column("flows", "flow").tolist()
        return [
            Flow(row, names[row], controllers[row], start[row], end[row], self._segment_bytes(sources[row]))
            for number, row in sorted((number, row) for row, number in enumerate(numbers))
            if number in sampled
        ]

    def _segment_bytes(self, source: str) -> int:
        """The payload of a full segment, for flows of the entry with this name.

        An entry without a name has the name of its controller. If a factor of the sweep has changed the
        controller, the entry is found by its position. This works only if there are as many names as entries.
        """
        entries = self.scenario.get("flows", [])
        sizes = [int(entry.get("mss", MSS)) for entry in entries]
        if len(set(sizes)) == 1:
            return sizes[0]
        named = {entry["name"]: size for entry, size in zip(entries, sizes, strict=True) if "name" in entry}
        in_order = dict(zip(self.entries, sizes, strict=False)) if len(self.entries) == len(sizes) else {}
        known: dict[str, int] = in_order | named
        return known.get(source, MSS)

    def links(self) -> list[tuple[int, str]]:
        """For each link that has samples, its row in the table `links` and its name."""
        sampled = set(self.run.column("link_samples", "link").tolist())
        numbers, names = self.run.column("links", "link").tolist(), self.run.names("links", "name")
        return [(row, names[row]) for row, number in enumerate(numbers) if number in sampled]

    def duration_s(self) -> float:
        """The time of the last sample (0: there are no samples)."""
        times = (self.run.column(table, "t_s") for table in ("flow_samples", "link_samples"))
        return max((float(of_table.max()) for of_table in times if of_table.size), default=0.0)


def starts(ends: Floats, interval_s: float) -> Floats:
    """Compute the beginning of each interval from its end. No interval begins before 0."""
    return np.maximum(ends - interval_s, 0.0)


def finite(times: Floats, values: Floats) -> Iterator[tuple[float, float]]:
    """The pairs of a time and its value.

    NaN and infinite values are left out, because JSON does not support them.
    """
    for time, value in zip(times.tolist(), values.tolist(), strict=True):
        if np.isfinite(value):
            yield time, value


_LONGEST = 100
"""Maximum number of characters of a flow's name in the name of a file."""


def file_names(names: Iterable[str]) -> list[str]:
    """Convert names to parts of file names. The parts are ASCII, and differ even if case is ignored."""
    taken: set[str] = set()
    found = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9+.-]", "_", name)[:_LONGEST].lstrip(".") or "_"
        number, candidate = 1, plain
        while candidate.lower() in taken:
            number += 1
            candidate = f"{plain}~{number}"
        taken.add(candidate.lower())
        found.append(candidate)
    return found
