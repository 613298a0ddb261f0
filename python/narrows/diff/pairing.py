"""Chooses the runs of two results that are compared with each other. All functions are pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from narrows.results.by_run import read_runs
from narrows.results.match import Key, point_key
from narrows.results.results import Results
from narrows.results.runs import Run, replicates

Seeds = tuple[int, ...]


@dataclass(frozen=True)
class Pairing:
    """The runs of a point of the sweep on both sides. Runs "count" if the comparison uses them."""

    factors: dict[str, Any]
    base: dict[int, Run]
    """Sound runs by seed."""
    head: dict[int, Run]
    seeds: tuple[Seeds, Seeds]
    """The seeds that count, for BASE and for HEAD. If the runs are paired, both tuples are equal."""
    paired: bool
    """Whether each run is compared with the other side's run with the same seed. If not, the means over all
    runs of each side are compared."""
    pairs: int
    """Number of seeds that both sides have."""
    identical: int
    """Number of seeds whose runs are bit-for-bit equal on both sides."""
    repeats: int
    """Number of runs that do not count, because they equal a run with another seed on the same side."""
    unsound: int
    """Number of runs in real time that do not count because their measurement was disturbed."""

    @property
    def is_identical(self) -> bool:
        """Whether both sides have the same seeds, and equal runs for each seed."""
        return self.base.keys() == self.head.keys() and 0 < self.pairs == self.identical


def pairings(base: Results, head: Results) -> dict[Key, Pairing]:
    """The runs of each point that both results have."""
    ours, theirs = _points(base), _points(head)
    return {
        key: _pairing(factors, runs, theirs[key][1]) for key, (factors, runs) in ours.items() if key in theirs
    }


def _points(results: Results) -> dict[Key, tuple[dict[str, Any], list[Run]]]:
    points: dict[Key, tuple[dict[str, Any], list[Run]]] = {}
    for row, run in zip(results.runs.to_pylist(), read_runs(results), strict=True):
        factors = {name: row[name] for name in results.factors}
        points.setdefault(point_key(factors), (factors, []))[1].append(run)
    return points


def _pairing(factors: dict[str, Any], base: list[Run], head: list[Run]) -> Pairing:
    sound = [{run.seed: run for run in runs if not run.doubts} for runs in (base, head)]
    common = [seed for seed in sound[0] if seed in sound[1]]
    # If the sides have only one common seed, a comparison of pairs has no confidence interval. A comparison
    # of the sides' means may have one.
    paired = len(common) > 1 or min(map(len, sound)) < 2
    if paired:
        kept = replicates(common, [side.values() for side in sound])
        chosen = (tuple(kept), tuple(kept))
        repeats = 2 * (len(common) - len(kept))
    else:
        first, second = (replicates(side, [side.values()]) for side in sound)
        chosen = (tuple(first), tuple(second))
        repeats = sum(map(len, sound)) - len(first) - len(second)
    return Pairing(
        factors,
        sound[0],
        sound[1],
        chosen,
        paired,
        len(common),
        sum(sound[0][seed].digest == sound[1][seed].digest for seed in common),
        repeats,
        len(base) + len(head) - sum(map(len, sound)),
    )
