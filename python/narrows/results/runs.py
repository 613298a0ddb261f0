"""Runs for measures and figures. A run has a seed, tables, and the factors of its point of the sweep."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows.errors import NarrowsError, choice
from narrows.results.factors import Factor, Where, same
from narrows.results.tables import no_column, place

Floats = NDArray[np.float64]
PRINTED = "printed"
"""Name of the table with one row of a paper's table. Only runs that were made from such a row have it."""
COMPUTED = "computed"
"""Name of the table that only runs of a model have. The table has quantities that no simulation has."""
INTERVALS = "iperf3"
"""Name of the table in a run of iperf3 that holds the sender's intervals, in the units of iperf3."""
PINGS = "pings"
"""Name of the table in a run of pings that holds their RTTs, in microseconds."""
PAPER = "paper"
"""Name of the table with the numbers that the paper prints for the run's experiment."""
DIGESTED = (PRINTED, COMPUTED, INTERVALS, PINGS, "flows")
"""The tables from which a run's digest is computed."""
Tables = Mapping[str, Mapping[str, Any]]
"""The values of each table and column, as numpy arrays or lists of strings."""


@dataclass(frozen=True)
class Run:
    """One simulation, or one run in real time."""

    factors: Mapping[str, Factor]
    seed: int
    tables: Tables
    scenario: Mapping[str, Any] = field(default_factory=dict)
    """The scenario as it ran, for figures and measures that need its parameters."""
    doubts: tuple[str, ...] = ()
    """Reasons not to trust a run in real time (empty: the run is sound, or it is a simulation)."""
    folder: Path | None = None
    """Folder of the results, for messages (None: the results are in memory)."""

    @cached_property
    def measured(self) -> dict[tuple[str, str], Any]:
        """Values of measures, by measure and arguments (`narrows.results.measures`)."""
        return {}

    @cached_property
    def digest(self) -> str:
        """A digest of the tables in `DIGESTED`, without the run's seed.

        The tables have, for example, means and percentiles of RTTs, and numbers of packets. If all values of
        two runs are bit-for-bit equal, the runs had the same sequence of events.
        """
        digest = hashlib.sha256()
        columns = {
            (table, name): values for table in DIGESTED for name, values in self.tables.get(table, {}).items()
        }
        for (table, name), values in sorted(columns.items()):
            digest.update(f"{table}.{name}".encode())
            digest.update(values.tobytes() if isinstance(values, np.ndarray) else repr(values).encode())
        return digest.hexdigest()

    def column(self, table: str, name: str) -> Floats:
        """A numeric column as floats.

        Raises:
            NarrowsError: if the run does not have the table or the column.
        """
        return np.asarray(self._values(table, name), dtype=np.float64)

    def names(self, table: str, name: str) -> list[str]:
        """The values of a table's column of strings.

        Raises:
            NarrowsError: if the run does not have the table or the column.
        """
        return [str(value) for value in self._values(table, name)]

    def _values(self, table: str, name: str) -> Any:
        if table not in self.tables:
            raise NarrowsError(f"results: table: {choice(table, self.tables)}")
        if name not in self.tables[table]:
            raise no_column(place(self.folder, table), name)
        return self.tables[table][name]

    def flows(self, pattern: str = "*") -> NDArray[np.int64]:
        """The rows of the table `flows` in which name, source or controller matches the glob `pattern`."""
        return self._rows("flows", pattern, ("name", "source", "cc"))

    def links(self, pattern: str = "*") -> NDArray[np.int64]:
        """Rows of the table `links` whose name matches the glob `pattern`."""
        return self._rows("links", pattern, ("name",))

    def link(self, name: str) -> int:
        """The row of the table `links` with this name.

        Raises:
            NarrowsError: if not exactly one link has this name.
        """
        rows = self.links(name)
        if rows.size != 1:
            raise NarrowsError(f"link {name}: found {rows.size} of that name in the results, expected one")
        return int(rows[0])

    def flow_series(self, row: int, quantity: str) -> tuple[Floats, Floats]:
        """Times (end of each bin, s) and values of a sampled quantity of the flow in that row.

        `rtt_s` is the smoothed RTT if no single samples were recorded. Linux does not report single samples
        (tcp_get_info, net/ipv4/tcp.c). Linux's smoothed RTT has a gain of 1/8 per ACK (tcp_rtt_estimator,
        net/ipv4/tcp_input.c). Its time constant is therefore 8 ACKs, which is 2 ms at 4000 ACKs/s.
        """
        t, values = self.flow_samples(row, quantity)
        if quantity == "rtt_s" and not np.isfinite(values).any():
            return self.flow_samples(row, "srtt_s")
        return t, values

    def flow_samples(self, row: int, quantity: str) -> tuple[Floats, Floats]:
        """Like `flow_series`, but the smoothed RTT does not replace a missing `rtt_s`."""
        return self._series("flow_samples", "flow", float(self.column("flows", "flow")[row]), quantity)

    def link_series(self, row: int, quantity: str) -> tuple[Floats, Floats]:
        """Times (end of each bin, s) and values of a sampled quantity of the link in that row."""
        return self._series("link_samples", "link", float(self.column("links", "link")[row]), quantity)

    def traced(self, entity: str, key: str) -> tuple[Floats, Floats]:
        """Times (s) and values of a traced variable of a flow or link (empty: it was not traced)."""
        if entity not in self._traces:
            self._traces[entity] = self._variables(entity)
        return self._traces[entity].get(key, (np.empty(0), np.empty(0)))

    @cached_property
    def _traces(self) -> dict[str, dict[str, tuple[Floats, Floats]]]:
        """Traced variables by entity and name."""
        return {}

    def _variables(self, entity: str) -> dict[str, tuple[Floats, Floats]]:
        if "traces" not in self.tables:
            return {}
        own = np.array(self.names("traces", "entity")) == entity
        keys = np.array(self.names("traces", "key"))[own]
        t, values = self.column("traces", "t_s")[own], self.column("traces", "value")[own]
        return {str(key): (t[keys == key], values[keys == key]) for key in np.unique(keys)}

    def distribution(self, entity: str, identity: int, quantity: str) -> tuple[Floats, Floats]:
        """Levels of quantiles (0 to 1) and the quantiles of a stored distribution."""
        table = self.tables.get("distributions", {})
        if not table:
            return np.empty(0), np.empty(0)
        kinds, quantities = (
            np.array(self.names("distributions", "entity")),
            np.array(self.names("distributions", "quantity")),
        )
        chosen = (
            (kinds == entity) & (quantities == quantity) & (self.column("distributions", "id") == identity)
        )
        return self.column("distributions", "quantile")[chosen], self.column("distributions", "value_s")[
            chosen
        ]

    def _rows(self, table: str, pattern: str, columns: Sequence[str]) -> NDArray[np.int64]:
        named = [self.names(table, column) for column in columns]
        hits = [any(fnmatch.fnmatchcase(name, pattern) for name in row) for row in zip(*named, strict=True)]
        return np.flatnonzero(hits)

    def _series(self, table: str, key: str, identity: float, quantity: str) -> tuple[Floats, Floats]:
        chosen = self.column(table, key) == identity
        return self.column(table, "t_s")[chosen], self.column(table, quantity)[chosen]


class Runs(Sequence[Run]):
    """Runs of one experiment."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def where(self, wanted: Where) -> Runs:
        """The runs whose factors have these values."""
        return Runs(
            run for run in self._runs if all(_has(run, name, value) for name, value in wanted.items())
        )

    def cases(self, without: Iterable[str] = ()) -> dict[tuple[tuple[str, Factor], ...], Runs]:
        """Runs grouped by the values of all factors except `without`, in order of first appearance."""
        dropped = set(without)
        groups: dict[tuple[tuple[str, Factor], ...], list[Run]] = {}
        for run in self._runs:
            key = tuple((name, value) for name, value in run.factors.items() if name not in dropped)
            groups.setdefault(key, []).append(run)
        return {key: Runs(group) for key, group in groups.items()}

    def values(self, factor: str) -> list[Factor]:
        """The values of a factor, in order of first appearance."""
        return list(dict.fromkeys(run.factors[factor] for run in self._runs if factor in run.factors))


def _has(run: Run, name: str, wanted: Factor | list[Factor]) -> bool:
    if name not in run.factors:
        return False
    options = wanted if isinstance(wanted, list) else [wanted]
    return any(same(run.factors[name], option) for option in options)


def fingerprint(runs: Iterable[Run]) -> str:
    """A digest of the results and seeds of several runs."""
    digest = hashlib.sha256()
    for run in runs:
        digest.update(f"seed {run.seed} {run.digest}".encode())
    return digest.hexdigest()


def replicates(seeds: Iterable[int], sides: Sequence[Iterable[Run]]) -> list[int]:
    """The seeds that count. A seed counts if its run differs from the runs of earlier seeds that count.

    If there are several sides, the runs must differ on every side.

    If nothing in a scenario is random, all seeds give the same run. If repetitions of this run counted, the
    confidence interval would have zero width, and any difference between two sides would be significant.
    """
    digests = [{run.seed: run.digest for run in side} for side in sides]
    known: list[set[str]] = [set() for _ in sides]
    kept = []
    for seed in seeds:
        found = [side[seed] for side in digests]
        if all(digest not in before for digest, before in zip(found, known, strict=True)):
            kept.append(seed)
            for digest, before in zip(found, known, strict=True):
                before.add(digest)
    return kept
