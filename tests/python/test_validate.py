"""The validation's grid, its errors, what it keeps, and its page; without a kernel."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrows.errors import NarrowsError
from narrows.scenario.load import loads
from narrows.validate import causes, grid, judge, measures, page, runner, shape, store
from narrows.validate.grid import Cell, Flows
from narrows.validate.measures import Side
from narrows.validate.runner import Ask, Finding
from sketch import Sketch

CELL = Cell(20, 20, 1.0, 0.0, Flows.SINGLE)


class Real(Sketch):
    """Real stacks whose goodput is a tenth below the simulator's, and who count their runs."""

    name = "kernel"
    most_jobs: int | None = 1

    def __init__(self, *, breaks: str = "", disturbed: bool = False) -> None:
        self.breaks, self.disturbed = breaks, disturbed
        self.runs: list[str] = []

    def facts(self) -> dict[str, Any]:
        return {"kernel": "6.0-fake"}

    def run(self, plan: Any) -> dict[str, Any]:
        cc = plan["flows"][0]["transport"]["cc"]
        self.runs.append(cc)
        if cc == self.breaks:
            raise NarrowsError("the guest ended")
        output = dict(super().run(plan))
        output["flows"] = {**output["flows"], "goodput_bps": 0.9 * output["flows"]["goodput_bps"]}
        reasons = ["the processors were busy"] if self.disturbed else []
        output["soundness"] = {"sound": not reasons, "reasons": reasons}
        return output


def ask(folder: Path, *, repetitions: int = 2, algorithms: tuple[str, ...] = ("reno",)) -> Ask:
    return Ask(folder, algorithms, (CELL,), repetitions, 2, "2s")


def side(goodput: float, rtt: float = 0.03, runs: int = 1) -> Side:
    figures = dict.fromkeys(measures.FIGURES, math.nan) | {"goodput_bps": goodput, "rtt_mean_s": rtt}
    return Side({figure: [value] * runs for figure, value in figures.items()})


def finding(error: float, *, algorithm: str = "reno", cell: Cell = CELL, flow: str = "near") -> Finding:
    return Finding(algorithm, cell, flow, side(1e7 * (1 + error)), side(1e7))


# The grid


def test_the_core_has_every_level_of_every_factor_equally_often_and_every_pair_of_rtt_and_buffer():
    cells = grid.core()
    assert len(set(cells)) == 18
    for factor in ("rate", "rtt", "buffer", "loss", "flows"):
        counts = Counter(getattr(cell, factor) for cell in cells)
        assert len(set(counts.values())) == 1, factor
    pairs = Counter((cell.rtt, cell.buffer) for cell in cells)
    assert pairs == dict.fromkeys(product(grid.RTTS, grid.BUFFERS), 2)
    assert set(grid.core()) | set(grid.ci()) <= set(grid.full())
    assert len(grid.full()) == 108


@pytest.mark.parametrize("cell", grid.full(), ids=lambda cell: cell.name)
def test_every_cell_is_a_scenario_whose_flows_are_as_its_name_says(cell):
    scenario = loads(grid.scenario(cell, "vegas", "10s"))
    names = {Flows.SINGLE: ["near"], Flows.CUBIC: ["near", "rival"], Flows.RTTS: ["near", "far"]}
    assert [flow.name for flow in scenario.flows] == names[cell.flows]
    assert [flow.cc for flow in scenario.flows] == (
        ["vegas", "cubic"] if cell.flows is Flows.CUBIC else ["vegas"] * len(scenario.flows)
    )


def test_the_buffer_is_in_packets_of_the_near_flows_product():
    # 20 Mbit/s x 40 ms = 100 kB: 66.7 packets of 1500 bytes.
    assert Cell(20, 40, 1.0, 0.0, Flows.SINGLE).queue == 67
    assert Cell(20, 40, 0.5, 0.0, Flows.RTTS).queue == 33


def test_cells_are_chosen_by_subset_name_and_pattern_each_once():
    assert grid.choose(["ci", "20mbit-20ms-1bdp-loss0-single"]) == grid.ci()
    assert len(grid.choose(["100mbit-*-single"])) == 18
    with pytest.raises(NarrowsError, match="found no cell 'croe', expected full, core, ci"):
        grid.choose(["croe"])


# Errors


def test_an_error_is_relative_to_the_real_runs_and_a_share_is_a_difference():
    model, real = side(9e6), side(1e7)
    assert measures.error(model, real, "goodput_bps") == pytest.approx(-0.1)
    assert measures.error(Side({"resent": [0.03]}), Side({"resent": [0.0]}), "resent") == 0.03
    assert math.isnan(measures.error(model, side(0.0), "goodput_bps"))


def test_medians_over_runs_leave_out_what_is_not_defined():
    assert Side({"rtt_mean_s": [1.0, math.nan, 3.0]}).median("rtt_mean_s") == 2.0
    assert math.isnan(Side({}).median("rtt_mean_s"))


def test_rtts_count_by_what_was_delivered_meanwhile():
    values, weights = np.array([0.02, 0.04, np.nan, 0.09]), np.array([3.0, 1.0, 5.0, 0.0])
    assert measures.weighted(values, weights) == (pytest.approx(0.025), 0.04)
    assert all(math.isnan(x) for x in measures.weighted(values[:0], weights[:0]))


def test_windows_of_the_same_sizes_are_not_apart_however_they_are_out_of_step():
    window = np.array([10.0, 20.0, 30.0, 40.0] * 50)
    assert shape.distance(window, np.roll(window, 1)) == 0
    assert shape.distance(1.2 * window, window) == pytest.approx(0.2)
    assert math.isnan(shape.distance(window[:0], window))


def test_the_period_of_a_sawtooth_is_its_epoch_and_small_ripples_are_none():
    t = np.arange(0.0, 40.0, 0.05)
    teeth = 50 + 10 * (t % 4)
    assert shape.period(t, teeth) == pytest.approx(4.0, abs=0.06)
    assert math.isnan(shape.period(t, 50 + np.sin(t)))


def test_targets_are_judged_by_medians_over_all_and_by_the_worst_algorithm():
    found = [finding(0.01), finding(-0.02), finding(0.40, algorithm="vegas")]
    verdicts = {verdict.words: verdict for verdict in judge.verdicts(found)}
    assert verdicts["median error in goodput"].found == pytest.approx(0.02)
    assert verdicts["median error in goodput"].met
    worst = verdicts["largest median of one algorithm in goodput"]
    assert (worst.worst, worst.met) == ("vegas", False)
    assert [(f.algorithm, figure) for f, figure, _ in judge.large(found)] == [("vegas", "goodput_bps")]


# What is run and kept


def test_both_sides_run_the_same_file_and_finished_cells_are_kept(tmp_path):
    real, simulator = Real(), Sketch()
    outcome = runner.run(ask(tmp_path), real, "kernel", simulator=simulator)
    assert real.runs == ["reno"] * 2
    (found,) = outcome.findings
    assert found.errors["goodput_bps"] == pytest.approx(1 / 0.9 - 1)
    assert outcome.kernels == ["6.0-fake"] and len(outcome.dates) == 1
    written = (tmp_path / "scenarios/reno" / f"{CELL.name}.toml").read_text()
    assert loads(written).flows[0].cc == "reno"
    runner.run(ask(tmp_path), real, "kernel", simulator=simulator)
    assert len(real.runs) == 2, "nothing is run again"
    runner.run(ask(tmp_path, repetitions=1), real, "kernel", simulator=simulator)
    assert len(real.runs) == 2, "more runs than asked for are enough"
    runner.run(ask(tmp_path, repetitions=3), real, "kernel", simulator=simulator)
    assert len(real.runs) == 5, "fewer are not"


def test_a_disturbed_run_is_not_compared_and_not_kept(tmp_path):
    disturbed = Real(disturbed=True)
    assert runner.run(ask(tmp_path), disturbed, "kernel", simulator=Sketch()).findings == []
    real = Real()
    assert len(runner.run(ask(tmp_path), real, "kernel", simulator=Sketch()).findings) == 1
    assert len(real.runs) == 2


def test_a_cell_that_fails_takes_no_other_along(tmp_path):
    wanted = ask(tmp_path, algorithms=("cubic", "reno"))
    outcome = runner.run(wanted, Real(breaks="cubic"), "kernel", simulator=Sketch())
    assert list(outcome.failed) == [f"cubic/{CELL.name}"]
    assert [found.algorithm for found in outcome.findings] == ["reno"]


def test_the_table_has_both_sides_and_the_error(tmp_path):
    store.write([finding(0.1)], tmp_path)
    lines = (tmp_path / "errors.csv").read_text().splitlines()
    row = dict(zip(lines[0].replace('"', "").split(","), lines[1].replace('"', "").split(","), strict=True))
    assert row["algorithm"] == "reno"
    assert float(row["goodput_bps_error"]) == pytest.approx(0.1)


# Causes and the page


def test_the_causes_that_are_there_can_be_read_and_speak_of_cells_that_exist():
    names = [cell.name for cell in grid.full()]
    for cause in causes.read():
        assert cause.cause and cause.known
        assert any(causes.fnmatchcase(name, cause.cell) for name in names), cause.cell
        assert all(causes.fnmatchcase(name, cause.algorithm) for name in runner.LINUX) or any(
            causes.fnmatchcase(name, cause.algorithm) for name in runner.LINUX
        )


def test_a_cause_with_a_wrong_key_is_one_line(tmp_path):
    path = tmp_path / "causes.toml"
    path.write_text('[[causes]]\ncause = "a"\nknown = "b"\nalgoritm = "reno"\n')
    with pytest.raises(NarrowsError, match="found keys cause, known, algoritm, expected cause, known"):
        causes.read(path)


def test_the_page_says_what_was_not_run_and_what_is_not_explained():
    outcome = runner.Outcome(
        Ask(Path("out"), ("reno", "bbr"), (CELL,), 3, 3, "20s"),
        "vm",
        [finding(0.5, algorithm="bbr"), finding(-0.4), finding(0.0, cell=grid.core()[0])],
        kernels=["6.1.0"],
        dates=["2026-11-22"],
    )
    known = causes.Cause("two modes", "seeds have both", algorithm="bbr")
    text = page.render(outcome, [known], "0.1.0", "ns-3 3.37")
    assert "2026-11-22, on Linux 6.1.0 (`--on vm`)" in text
    assert "the other 106 were **not run**" in text
    lines = [line for line in text.splitlines() if CELL.name in line and "Mbit/s" in line]
    assert "two modes | seeds have both" in lines[0] and "**+50.0**" in lines[0]
    assert "**not explained**" in lines[1]
