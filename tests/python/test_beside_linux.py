"""The simulator compared with a recording of Linux 6.1, for fifteen algorithms."""

from __future__ import annotations

import math

import pytest
from narrows import sweep
from narrows.validate import grid, judge, runner
from narrows.validate.grid import Flows
from narrows.validate.recording import Recording

WHOLE = {"goodput_bps": 0.006, "rtt_mean_s": 0.01, "window": 0.02}
"""Largest median error over all flows."""
EACH = {"goodput_bps": 0.05, "rtt_mean_s": 0.03, "window": 0.15}
"""Largest median error over the flows of any single algorithm."""


@pytest.fixture(scope="module")
def beside_linux(tmp_path_factory):
    """The recorded single flows, simulated with the seeds of the real flows."""
    alone = tuple(cell for cell in grid.core() if cell.flows is Flows.SINGLE)
    source = Recording()
    (duration,) = source.durations
    asked = runner.Ask(tmp_path_factory.mktemp("recorded"), runner.linux(), alone, seeds=1, duration=duration)
    return runner.run(asked, None, source.backend, source=source, simulator=sweep.simulator(), jobs=2)


def test_all_fifteen_algorithms_are_present(beside_linux):
    assert not beside_linux.absent, "the recording has another grid, so it must be recorded again"
    assert sorted(judge.by_algorithm(beside_linux.findings)) == sorted(runner.linux())
    assert all(not math.isnan(finding.errors["goodput_bps"]) for finding in beside_linux.findings)


@pytest.mark.parametrize("figure", WHOLE)
def test_a_flow_alone_is_near_linuxs(beside_linux, figure):
    """Each bound is about twice the error of the current simulator."""
    assert judge.size(beside_linux.findings, figure) < WHOLE[figure]
    groups = judge.by_algorithm(beside_linux.findings)
    found = {name: judge.size(rows, figure) for name, rows in groups.items()}
    assert {name: size for name, size in found.items() if size >= EACH[figure]} == {}
