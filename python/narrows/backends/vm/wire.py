"""Converts outputs of runs to JSON and back. Arrays are encoded as their bytes, so no value is rounded."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


def pack(value: Any) -> Any:
    """A value that JSON can represent."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "bytes": base64.b64encode(value.tobytes()).decode("ascii")}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: pack(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [pack(entry) for entry in value]
    return value


def unpack(value: Any) -> Any:
    """The original value of a result of `pack`."""
    if isinstance(value, dict):
        if value.keys() == {"dtype", "bytes"}:
            return np.frombuffer(base64.b64decode(value["bytes"]), dtype=np.dtype(value["dtype"])).copy()
        return {key: unpack(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [unpack(entry) for entry in value]
    return value
