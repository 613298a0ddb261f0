"""Reno, CUBIC and BBR of the simulator compared with those of the running kernel.

The runs last ten seconds without random loss. The bounds are 10 % for goodput and mean RTT, and 15 % for the
mean window. For flows next to CUBIC, the bounds for goodput and window are 25 %, because two runs on the
kernel can differ by this much. Disturbed runs are repeated (`flaky`).
"""

from __future__ import annotations

import pytest
from narrows import sweep
from narrows.backends.kernel.backend import Kernel
from narrows.validate import grid, runner
from narrows.validate.grid import Cell, Flows

pytestmark = pytest.mark.usefixtures("real", "tidy")

ALONE = Cell(20, 20, 1.0, 0.0, Flows.SINGLE)
BESIDE_CUBIC = Cell(20, 20, 1.0, 0.0, Flows.CUBIC)
BOUNDS = {
    ALONE: {"goodput_bps": 0.10, "rtt_mean_s": 0.10, "cwnd_mean": 0.15},
    BESIDE_CUBIC: {"goodput_bps": 0.25, "rtt_mean_s": 0.10, "cwnd_mean": 0.25},
}


def test_the_bounds_are_for_cells_of_the_part_that_ci_runs():
    assert set(BOUNDS) <= set(grid.ci())


@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("cell", list(BOUNDS), ids=lambda cell: cell.name)
@pytest.mark.parametrize("algorithm", ["reno", "cubic", "bbr"])
def test_the_simulator_is_near_this_kernel(algorithm, cell, tmp_path):
    real, simulator = Kernel(), sweep.simulator()
    if algorithm not in runner.available(real, simulator):
        pytest.skip(f"this kernel has no {algorithm}")
    ask = runner.Ask(tmp_path, (algorithm,), (cell,), repetitions=1, seeds=3, duration="10s")
    outcome = runner.run(ask, real, "kernel", simulator=simulator, jobs=1)
    assert outcome.findings, "the run was disturbed"
    (found,) = outcome.findings
    beyond = {figure: found.errors[figure] for figure, most in BOUNDS[cell].items()}
    assert {f: e for f, e in beyond.items() if abs(e) > BOUNDS[cell][f]} == {}
