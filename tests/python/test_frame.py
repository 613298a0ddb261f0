"""Columns as numpy arrays have the values of the Arrow columns, and are grouped correctly."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.errors import OutputError
from narrows.results import summary
from narrows.results.arrow import floats, integers
from narrows.results.frame import coded, distinct, grouped
from narrows.results.results import Results

NUMBERS = st.lists(st.none() | st.floats(allow_nan=True), max_size=20)


def chunked(values, kind, cut):
    """A column of two chunks. The second chunk is a slice of a longer array."""
    first, second = pa.array(values[:cut], kind), pa.array([*values[:1], *values[cut:]], kind)
    return pa.chunked_array([first, second.slice(min(1, len(values)))])


@given(NUMBERS, st.integers(0, 20))
def test_floats_are_those_of_arrow(values, cut):
    found = floats(chunked(values, pa.float64(), cut)).tolist()
    expected = [math.nan if value is None else value for value in values]
    assert repr(found) == repr(expected)


@given(st.lists(st.none() | st.integers(0, 2**53), max_size=20), st.integers(0, 20))
def test_integers_become_floats(values, cut):
    found = floats(chunked(values, pa.uint64(), cut)).tolist()
    assert repr(found) == repr([math.nan if value is None else float(value) for value in values])


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20), st.integers(0, 20))
def test_integers_are_exact(values, cut):
    assert integers(chunked(values, pa.uint64(), cut)).tolist() == values


@given(st.lists(st.sampled_from([-1.5, 0.0, -0.0, 2.0, math.inf, math.nan]) | st.floats(), max_size=20))
def test_distinct_values_are_those_of_numpy(values):
    column = np.array(values, np.float64)
    _, expected_firsts, expected_codes = np.unique(column, return_index=True, return_inverse=True)
    firsts, codes = distinct(column)
    assert firsts.tolist() == expected_firsts.tolist()
    assert codes.tolist() == expected_codes.tolist()


@given(st.lists(st.none() | st.text(max_size=3), max_size=20), st.integers(0, 20))
def test_texts_are_those_of_arrow(values, cut):
    found = coded(chunked(values, pa.string(), cut))
    assert [found.words[code] for code in found.codes] == ["nan" if v is None else v for v in values]


@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([0.0, 1.5, math.nan])), max_size=30))
def test_groups_are_those_of_a_dictionary(rows):
    expected = {}
    for index, (a, b) in enumerate(rows):
        expected.setdefault((a, repr(b)), []).append(index)
    groups = grouped(np.array([a for a, _ in rows], np.int64), np.array([b for _, b in rows]))
    assert [groups[i].tolist() for i in range(len(groups))] == list(expected.values())
    assert [groups.codes[i] for i in groups.order.tolist()] == [
        n for n, m in enumerate(expected.values()) for _ in m
    ]
    assert groups.sizes.tolist() == [len(members) for members in expected.values()]
    assert groups.firsts.tolist() == [members[0] for members in expected.values()]


def test_texts_are_no_numbers():
    with pytest.raises(OutputError, match="found a column of type string, expected numbers"):
        integers(pa.chunked_array([["a"]]))


def test_flows_of_unknown_runs_are_refused():
    flows = {name: [0.5] for name in ("flow", "size_bytes", *summary.FLOW_FIGURES)}
    texts = {"source": ["a"], "name": ["a"], "cc": ["reno"]}
    tables = {
        "runs": pa.table({"run": pa.array([], pa.uint32()), "seed": pa.array([], pa.uint64())}),
        "flows": pa.table({"run": pa.array([3], pa.uint32())} | flows | texts),
    }
    with pytest.raises(
        OutputError, match="found a flow of run 3, expected one of the 0 that the table runs has"
    ):
        summary.flows(Results({}, tables))
