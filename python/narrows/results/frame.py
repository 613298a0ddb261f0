"""Reads columns of a table as numpy arrays, for tables with millions of rows. Does not import pandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrows.results.arrow import floats, integers
from narrows.results.results import Results

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass
class Texts:
    """A column of strings, stored as indices into a list of its distinct strings."""

    codes: Codes
    words: list[str]


@dataclass
class Frame:
    """Some columns of a table."""

    run: Codes
    numbers: dict[str, Numbers]
    """The columns of numbers, by name. NaN means that a value is undefined."""
    texts: dict[str, Texts]

    @classmethod
    def of(cls, results: Results, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Self:
        """Read these columns of a table.

        Raises:
            OutputError: if the table cannot be read or lacks one of the columns.
        """
        columns = results.read_columns(table, ["run", *numbers, *texts])
        return cls(
            integers(columns["run"]),
            {name: floats(columns[name]) for name in numbers},
            {name: coded(columns[name]) for name in texts},
        )

    def __len__(self) -> int:
        return len(self.run)

    def take(self, rows: NDArray[Any]) -> Frame:
        """The selected rows. `rows` has either their indices or a mask."""
        return Frame(
            self.run[rows],
            {name: values[rows] for name, values in self.numbers.items()},
            {name: Texts(texts.codes[rows], list(texts.words)) for name, texts in self.texts.items()},
        )


@dataclass(frozen=True)
class Groups:
    """A division of rows into groups with equal keys, in the order of their first rows."""

    codes: Codes
    """For each row, the number of its group."""
    order: Codes
    """Indices of the rows, group by group. Within a group, they are in increasing order."""
    bounds: Codes
    """The index in `order` at which each group begins. The last entry is the length of `order`."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, group: int) -> Codes:
        """The indices of a group's rows."""
        return self.order[self.bounds[group] : self.bounds[group + 1]]

    @property
    def sizes(self) -> Codes:
        """The number of rows of each group."""
        return np.diff(self.bounds)

    @property
    def firsts(self) -> Codes:
        """The index of each group's first row."""
        return self.order[self.bounds[:-1]]


def grouped(*keys: NDArray[Any]) -> Groups:
    """The groups of rows for which all keys are equal. NaN equals NaN."""
    key = np.zeros(len(keys[0]), np.int64)
    for part in keys:
        # Renumber the groups after each key. Otherwise `key` could overflow, because its range is multiplied
        # by the number of values of each key.
        _, codes = distinct(part)
        _, key = distinct(key * (codes.max(initial=0) + 1) + codes)
    firsts, _ = distinct(key)
    codes = np.argsort(np.argsort(firsts))[key]
    sizes = np.bincount(codes, minlength=len(firsts))
    order = np.argsort(codes, kind="stable")
    return Groups(codes, order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def distinct(values: NDArray[Any]) -> tuple[Codes, Codes]:
    """The distinct values of an array, in increasing order. NaN equals NaN.

    The results are those of `numpy.unique`. That function imports `numpy.ma`, which takes as long as the
    summary of a run.

    Returns:
        The index of the first occurrence of each distinct value, and for each element the number of its
        value.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    here, before = ordered[1:], ordered[:-1]
    is_new = np.ones(len(values), bool)
    is_new[1:] = (here != before) & ((here == here) | (before == before))  # noqa: PLR0124 (false for NaN)
    codes = np.empty(len(values), np.int64)
    codes[order] = np.cumsum(is_new) - 1
    return order[is_new], codes


def coded(column: pa.ChunkedArray[Any]) -> Texts:
    """A column as texts. Null becomes the text `nan`."""
    numbers: dict[Any, int] = {}
    codes = [numbers.setdefault(word, len(numbers)) for chunk in column.chunks for word in chunk.to_pylist()]
    return Texts(np.array(codes, np.int64), ["nan" if word is None else str(word) for word in numbers])
