"""Makes Arrow arrays without pandas.

`pyarrow.array` imports pandas if pandas is installed, which takes 0.4 s.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrows.errors import OutputError

_LARGEST_TEXT = 2**31 - 1
"""Maximum number of bytes of text in an array. Offsets have 32 bits."""
_NUMBERS = "bBhHiIlLqQd"
"""Type codes of the numpy types that are converted here: integers, and floats of 64 bits."""
_EXACT = (-(2**53), 2**53)
"""Between these limits, a 64-bit float represents every integer exactly."""


def array(values: Any, kind: pa.DataType | None = None) -> pa.Array[Any]:
    """Return an array equal to `pyarrow.array(values).cast(kind)`.

    Args:
        values: a numpy array, or a list.
        kind: type of the array (default: the type of the values).
    """
    if len(values) == 0 and kind is not None:
        return pa.nulls(0, kind)  # type: ignore[no-any-return,call-overload]
    made = None if isinstance(values, np.ndarray) else _texts(values)
    if made is None:
        made = _numbers(_plain(values), kind)
    if made is None:
        made = pa.array(values)
    return made if kind is None or made.type == kind else made.cast(kind)


def _plain(values: Any) -> Any:
    """Convert a list of integers or of floats to a numpy array. Other values are returned unchanged."""
    kinds = set(map(type, values)) if isinstance(values, list) else set()
    if kinds in ({int}, {float}):
        try:
            return np.array(values, np.int64 if kinds == {int} else np.float64)
        except OverflowError:
            pass
    return values


def _numbers(values: Any, kind: pa.DataType | None) -> pa.Array[Any] | None:
    """An array of integers or floats (None: another type, or integers outside the range of `kind`)."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        return None
    if values.dtype.char not in _NUMBERS or not values.dtype.isnative:
        return None
    if kind is not None and values.dtype.kind in "iu" and len(values) > 0:
        target = _numpy_type(kind)
        if target.char not in _NUMBERS:
            return None
        if target != values.dtype:
            least, most = _EXACT if target.kind == "f" else _range(target)
            if int(values.min()) < least or int(values.max()) > most:
                return None
            values = values.astype(target)
    plain = np.ascontiguousarray(values)
    made: pa.Array[Any] = pa.Array.from_buffers(
        pa.from_numpy_dtype(plain.dtype), len(plain), [None, _buffer(plain)], 0
    )
    return made


@cache
def _numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    return np.dtype(kind.to_pandas_dtype())


@cache
def _range(target: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    limits: Any = np.iinfo(np.dtype(target.str))
    return limits.min, limits.max


def _buffer(values: Any) -> pa.Buffer:
    """The memory of a numpy array, without a copy."""
    return pa.py_buffer(values)


def _texts(values: Any) -> pa.Array[Any] | None:
    """An array of strings (None: `values` is not a list of strings)."""
    if not isinstance(values, list) or set(map(type, values)) != {str}:
        return None
    text = "".join(values)
    # Without other characters, the length of a text is its number of bytes.
    parts = values if text.isascii() else [value.encode() for value in values]
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(values)), out=ends[1:])
    if ends[-1] > _LARGEST_TEXT:
        return None
    made: pa.Array[Any] = pa.Array.from_buffers(
        pa.string(),
        len(values),
        [None, _buffer(ends.astype(np.int32)), pa.py_buffer(text.encode())],
        0,
    )
    return made


def unsigned(column: pa.ChunkedArray[Any]) -> NDArray[np.uint32]:
    """A column of 32-bit numbers without nulls."""
    return integers(column).astype(np.uint32)


def floats(column: pa.ChunkedArray[Any]) -> NDArray[np.float64]:
    """A column as floats. Null becomes NaN.

    The function does not use `ChunkedArray.to_numpy`, which would import pandas, or `cast`, which would load
    Arrow's functions. Both would slow down a short run.
    """
    parts = [np.empty(0)]
    for chunk in column.chunks:
        values = _memory(chunk)
        if values is None:
            parts.append(np.full(len(chunk), np.nan))
            continue
        values = values.astype(np.float64)
        valid = chunk.buffers()[0]
        if valid is not None and chunk.null_count:
            bits = np.unpackbits(np.frombuffer(memoryview(valid), np.uint8), bitorder="little")
            values[bits[chunk.offset : chunk.offset + len(chunk)] == 0] = np.nan
        parts.append(values)
    return np.concatenate(parts)


def integers(column: pa.ChunkedArray[Any]) -> NDArray[np.int64]:
    """A column of integers without nulls."""
    parts = [np.empty(0, np.int64)]
    parts += [values.astype(np.int64) for chunk in column.chunks if (values := _memory(chunk)) is not None]
    return np.concatenate(parts)


def _memory(chunk: pa.Array[Any]) -> NDArray[Any] | None:
    """The memory of an array of numbers (None: the array has no values)."""
    buffers = chunk.buffers()
    if len(buffers) < 2 or (data := buffers[1]) is None:
        return None
    if not (pa.types.is_integer(chunk.type) or pa.types.is_floating(chunk.type)):
        raise OutputError(f"found a column of type {chunk.type}, expected numbers")
    kind: np.dtype[Any] = np.dtype(chunk.type.to_pandas_dtype())
    return np.frombuffer(memoryview(data), kind, len(chunk), chunk.offset * kind.itemsize)
