"""Measures of the cost of feedback, on hand-made tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from narrows.errors import NarrowsError
from narrows.studies import Run, measure_run

U64 = np.uint64


def a_run(*, ports: int = 2, counted: float = 1.0) -> Run:
    """A run of two flows that send 1500 and 60 bytes. If `counted` is 0, all byte counts of flows are 0."""
    counts = {
        "rewritten_data": 30,
        "rewritten_acks": 10,
        "messages": 6,
        "message_flows": 99,
        "notices": 4,
    }
    return Run(
        {},
        1,
        {
            "flows": {
                "name": ["a", "b"],
                "source": ["a", "b"],
                "cc": ["rcp", "rcp"],
                "sent_bytes": counted * np.array([1500.0, 60.0]),
                "signal_bytes": counted * np.array([12.0, 8.0]),
            },
            "signalling": {
                "duration_s": np.full(ports, 20.0),
                **{name: np.full(ports, count, U64) for name, count in counts.items()},
            },
        },
    )


def test_bytes_are_those_of_the_flows_asked_for() -> None:
    assert measure_run("signalling_bytes", a_run()).value == pytest.approx(100 * 20 / 1560)
    assert measure_run("signalling_bytes", a_run(), flows="a").value == pytest.approx(0.8)


def test_work_is_that_of_all_ports_per_second() -> None:
    assert measure_run("signalling_work", a_run()).value == pytest.approx(2 * 40 / 20)
    assert measure_run("signalling_work", a_run(), of="messages").value == pytest.approx(2 * 10 / 20)
    assert measure_run("signalling_work", a_run(ports=0)).value == 0
    with pytest.raises(NarrowsError, match="of: found 'words', expected one of rewrites, messages"):
        measure_run("signalling_work", a_run(), of="words")


@pytest.mark.parametrize("measure", ["signalling_bytes", "signalling_work"])
def test_missing_counters_are_undefined(measure: str) -> None:
    assert math.isnan(measure_run(measure, a_run(ports=0, counted=0.0)).value)
