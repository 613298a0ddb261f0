"""Finds runs that are identical in every packet, although they differ in a factor or in the seed.

Readers must know about identical runs, because several of them are only one piece of evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from narrows.results.factors import Factor, in_words
from narrows.results.runs import PRINTED, Runs, fingerprint

Point = tuple[Mapping[str, Factor], str]
"""A point of the sweep: its factors, and the fingerprint of its runs."""


def same_runs(points: Sequence[Point]) -> list[str]:
    """Sentences about values of a factor whose runs are identical."""
    sentences = []
    for name in dict.fromkeys(name for factors, _ in points for name in factors):
        groups: dict[tuple[tuple[str, Factor], ...], dict[str, list[Factor]]] = {}
        for factors, print_ in points:
            if name in factors:
                rest = tuple(item for item in factors.items() if item[0] != name)
                groups.setdefault(rest, {}).setdefault(print_, []).append(factors[name])
        sets = Counter(tuple(same) for alike in groups.values() for same in alike.values() if len(same) > 1)
        for values, count in sets.items():
            listed = " and ".join(map(in_words, values))
            where = "" if count == len(groups) else f" in {count} of {len(groups)} cases"
            sentences.append(f"the runs with {name} {listed} are identical{where}")
    return sentences


def same_in_experiment(runs: Runs) -> list[str]:
    """Sentences about all identical runs of an experiment, including runs that no claim uses."""
    if any(PRINTED in run.tables for run in runs):
        return []
    cases = runs.cases()
    sentences = same_runs([(dict(key), fingerprint(group)) for key, group in cases.items()])
    fixed = sum(len(group) > 1 and len({run.digest for run in group}) == 1 for group in cases.values())
    if fixed:
        where = "" if fixed == len(cases) else f" at {fixed} of {len(cases)} points"
        sentences.append(f"all seeds give the same run{where}")
    return sentences


def same_in_two(experiments: Mapping[str, Runs]) -> list[str]:
    """Sentences about points of two experiments that have identical runs."""
    prints = {
        identity: {fingerprint(group) for group in runs.cases().values()}
        for identity, runs in experiments.items()
        if not any(PRINTED in run.tables for run in runs)
    }
    names = list(prints)
    return [
        f"{len(both)} of {len(prints[one])} points of {one} have the same runs as points of {other}"
        for i, one in enumerate(names)
        for other in names[i + 1 :]
        if (both := prints[one] & prints[other])
    ]
