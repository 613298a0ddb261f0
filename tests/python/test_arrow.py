"""Arrow arrays that Narrows makes without pandas are equal to those that pyarrow makes."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.results import tables
from narrows.results.arrow import array

KINDS = [None, pa.float64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.string()]
VALUES = [
    np.array([1.5, math.nan, -math.inf]),
    np.array([1, 2, 3], np.float32),
    np.array([0, 2**32 - 1, 7], np.uint64),
    np.array([0, 2**64 - 1], np.uint64),
    np.array([2**53, 2**53 + 1], np.uint64),
    np.array([-1, 5], np.int64),
    np.array([1, 2, 3, 4], np.int64)[::2],
    np.array([1, 2], ">i4"),
    np.array([True, False]),
    np.array([], np.uint64),
    np.array(["a", "b"]),
    [],
    [1, 2],
    [2**63, 1],
    [2**64],
    [1.0, 2.5],
    [1, 2.5],
    [True, False],
    [None],
    [1, None],
    ["a", None],
    ["", "flow", "grün", "\U0001f680"],
    [[1, 2], [3]],
]


def outcome(make):
    """The array, or the class of the error."""
    try:
        return make()
    except (pa.ArrowException, OverflowError, TypeError) as error:
        return type(error)


def by_pyarrow(values, kind):
    made = pa.array(values)
    return made if kind is None else made.cast(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("values", VALUES, ids=repr)
def test_an_array_equals_that_of_pyarrow(values, kind):
    made, expected = outcome(lambda: array(values, kind)), outcome(lambda: by_pyarrow(values, kind))
    if isinstance(expected, pa.Array):
        assert made.type == expected.type
        assert made.null_count == expected.null_count
        assert repr(made.to_pylist()) == repr(expected.to_pylist())
        made.validate(full=True)
    else:
        assert made is expected


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_texts_are_encoded_as_by_pyarrow(values):
    made = array(values, pa.string())
    made.validate(full=True)
    assert made.equals(pa.array(values))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.sampled_from(KINDS[1:5]))
def test_integers_are_converted_as_by_pyarrow(values, kind):
    values = np.array(values, np.uint64)
    made, expected = outcome(lambda: array(values, kind)), outcome(lambda: by_pyarrow(values, kind))
    assert made.equals(expected) if isinstance(expected, pa.Array) else made is expected


@pytest.mark.parametrize("name", [*tables.SCHEMAS, "runs"])
def test_an_empty_table_has_the_columns_of_its_schema(name):
    schema = tables.SCHEMAS.get(name, pa.schema([("run", pa.uint32())]))
    assert tables.empty(name).equals(schema.empty_table())
