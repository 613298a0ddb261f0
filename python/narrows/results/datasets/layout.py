"""Determines where a sweep's runs are in a dataset: their partitions and the names of segments."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from narrows.results import segments, tables
from narrows.results.results import DATASET, SOUNDNESS

MOST_PARTITIONS = 256
"""Maximum number of groups of consecutive runs with equal partitions.

A group costs at least one object per table.
"""
_LONGEST_PART = 200
"""Maximum number of bytes of ``<factor>=<value>``. File systems allow 255 bytes per name, and S3 allows 1024
bytes per key."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The text that Hive writes for null in a path."""


@dataclass(frozen=True)
class Layout:
    """The partitions and segments of a sweep's runs. Workers get a copy of this object."""

    sweep: str
    """Identifier of the sweep, computed from its metadata by `identity`."""
    keys: tuple[str, ...]
    """Factors whose values are in the path. All other factors are columns of the table of runs."""
    starts: tuple[int, ...]
    """The first run of each group. A group has consecutive runs that are in the same partition."""
    folders: tuple[str, ...]
    """The partition of each group, e.g. ``flows.0.cc=cubic/topology.rate=20mbit``."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Layout:
        """The layout of the sweep with this metadata.

        A factor is left out of the path if it would divide the runs into more than `MOST_PARTITIONS` groups
        of consecutive runs. This prevents many small files in sweeps with many points.
        """
        runs = metadata.get("runs", [])
        keys: list[str] = []
        starts, folders = [0], [""]
        for factor in metadata.get("factors", []):
            if not _can_be_key(factor, {run.get(factor) for run in runs}):
                continue
            tried = [*keys, factor]
            groups = _groups(runs, tried)
            if len(groups) <= MOST_PARTITIONS:
                keys = tried
                starts, folders = [run for run, _ in groups], [folder for _, folder in groups]
        return cls(identity(metadata), tuple(keys), tuple(starts), tuple(folders))

    def folder(self, run: int) -> str:
        """The partition of a run."""
        return self.folders[bisect_right(self.starts, run) - 1]

    def divide(self, runs: Iterable[int]) -> dict[str, list[int]]:
        """For each partition, the numbers of its runs in increasing order."""
        divided: dict[str, list[int]] = {}
        for run in sorted(runs):
            divided.setdefault(self.folder(run), []).append(run)
        return divided

    def name(self, runs: Sequence[int]) -> str:
        """The name of a segment with these runs: the lowest run and a hash, e.g. ``12-5f0c9a2b81d4``."""
        text = f"{self.sweep}:{','.join(map(str, runs))}"
        return f"{runs[0]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def identity(metadata: Mapping[str, Any]) -> str:
    """A hash of the metadata, without the entries in which identical sweeps can differ.

    These entries are the soundness of the runs and the state of the dataset.
    """
    shared = {key: value for key, value in metadata.items() if key not in (SOUNDNESS, DATASET)}
    text = json.dumps(shared, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file(table: str, folder: str, name: str) -> str:
    """The name of the object with a segment's table."""
    return "/".join(part for part in (table, folder, f"{name}.parquet") if part)


def part(factor: str, value: str | float) -> str:
    """``<factor>=<value>``, with the escapes of Hive and Arrow: %2F for a slash."""
    text = repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
    return f"{quote(factor, safe='')}={quote(text, safe='')}"


_COLUMNS = {segments.RUNS, "run", "seed", *tables.RUN_COUNTS} | {
    name for schema in tables.SCHEMAS.values() for name in schema.names
}


def _can_be_key(factor: str, values: set[Any]) -> bool:
    """Whether the values of a factor can be in the path, and no table has a column with the factor's name."""
    return factor not in _COLUMNS and all(
        isinstance(value, str | float | int)
        and value not in ("", _NULL)
        and len(part(factor, value)) <= _LONGEST_PART
        for value in values
    )


def _groups(runs: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[tuple[int, str]]:
    """The first run and the partition of each group of consecutive runs with equal values of the keys.

    The function stops early if there are more than `MOST_PARTITIONS` groups.
    """
    groups: list[tuple[int, str]] = []
    before: list[Any] | None = None
    for run in runs:
        values = [run[key] for key in keys]
        if values != before:
            folder = "/".join(part(key, value) for key, value in zip(keys, values, strict=True))
            groups.append((int(run["run"]), folder))
            before = values
            if len(groups) > MOST_PARTITIONS:
                break
    return groups
