"""`narrows validate` without a kernel: grid, errors, kept results, and page."""

from __future__ import annotations

import html
import json
import math
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrows.cli import validate as command
from narrows.errors import NarrowsError
from narrows.report import folder
from narrows.report.shade import contrast
from narrows.results.results import Results
from narrows.scenario.load import loads
from narrows.validate import causes, charts, grid, judge, kept, measures, page, runner, shape, store
from narrows.validate.grid import Cell, Flows
from narrows.validate.measures import Side
from narrows.validate.place import Place
from narrows.validate.runner import Ask, Finding
from sketch import Sketch

CELL = Cell(20, 20, 1.0, 0.0, Flows.SINGLE)


class Real(Sketch):
    """A stand-in for real stacks.

    Its goodput is 10 % below the simulated goodput. It lists the algorithms of its runs.
    """

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


class Newer(Real):
    def facts(self) -> dict[str, Any]:
        return {"kernel": "6.1-newer"}


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
def test_every_cell_is_a_scenario_with_the_flows_of_its_name(cell):
    scenario = loads(grid.scenario(cell, "vegas", "10s"))
    names = {Flows.SINGLE: ["near"], Flows.CUBIC: ["near", "rival"], Flows.RTTS: ["near", "far"]}
    assert [flow.name for flow in scenario.flows] == names[cell.flows]
    assert [flow.cc.name for flow in scenario.flows] == (
        ["vegas", "cubic"] if cell.flows is Flows.CUBIC else ["vegas"] * len(scenario.flows)
    )


def test_the_buffer_is_in_packets_of_the_near_flows_product():
    # 20 Mbit/s x 40 ms are 100 kB, or 66.7 packets of 1500 bytes.
    assert Cell(20, 40, 1.0, 0.0, Flows.SINGLE).queue == 67
    assert Cell(20, 40, 0.5, 0.0, Flows.RTTS).queue == 33


def test_cells_are_chosen_by_subset_name_and_pattern_each_once():
    assert grid.choose(["ci", "20mbit-20ms-1bdp-loss0-single"]) == grid.ci()
    assert len(grid.choose(["100mbit-*-single"])) == 18


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("croe", "; nearest is 'core'"),
        ("20mbit-20ms-1bdp-loss0-singel", "; nearest is '20mbit-20ms-1bdp-loss0-single'"),
        ("5mbit-*", ": full, core, ci, 20mbit-20ms-0.5bdp-loss0-single, ..."),
    ],
)
def test_unknown_cells_give_a_one_line_error_with_the_nearest_name(word, near):
    with pytest.raises(NarrowsError) as error:
        grid.choose([word])
    assert str(error.value) == f"--cells: found '{word}', expected a part of the grid or names of cells{near}"


@pytest.mark.parametrize("cells", ["", ","])
def test_no_cells_give_a_one_line_error_before_anything_is_run(narrows, monkeypatch, tmp_path, cells):
    monkeypatch.setattr(command, "real_stacks", lambda _: pytest.fail("asked for real stacks"))
    said = narrows("validate", "--out", tmp_path / "out", "--cells", cells)
    assert said == (2, "", "--cells: found '', expected full, core, ci, names or patterns of cells\n")


@pytest.mark.parametrize("duration", ["30", "long", "0s", "-1s", '1s"'])
def test_an_invalid_duration_gives_a_one_line_error_before_any_run(narrows, monkeypatch, tmp_path, duration):
    monkeypatch.setattr(command, "real_stacks", lambda _: pytest.fail("asked for real stacks"))
    out = tmp_path / "out"
    code, printed, said = narrows("validate", "--out", out, f"--duration={duration}")
    assert (code, printed) == (2, "")
    assert said.startswith(f"--duration: found {duration!r}, expected ") and said.count("\n") == 1
    assert not out.exists()


# Errors


def test_an_error_is_relative_to_the_real_runs_and_a_share_is_a_difference():
    model, real = side(9e6), side(1e7)
    assert measures.error(model, real, "goodput_bps") == pytest.approx(-0.1)
    assert measures.error(Side({"resent": [0.03]}), Side({"resent": [0.0]}), "resent") == 0.03
    assert math.isnan(measures.error(model, side(0.0), "goodput_bps"))


def test_medians_over_runs_skip_undefined_values():
    assert Side({"rtt_mean_s": [1.0, math.nan, 3.0]}).median("rtt_mean_s") == 2.0
    assert math.isnan(Side({}).median("rtt_mean_s"))


def test_rtts_are_weighted_by_delivered_bytes():
    values, weights = np.array([0.02, 0.04, np.nan, 0.09]), np.array([3.0, 1.0, 5.0, 0.0])
    assert measures.weighted(values, weights) == (pytest.approx(0.025), 0.04)
    assert all(math.isnan(x) for x in measures.weighted(values[:0], weights[:0]))


def test_equal_windows_have_no_distance_at_any_offset():
    window = np.array([10.0, 20.0, 30.0, 40.0] * 50)
    assert shape.distance(window, np.roll(window, 1)) == 0
    assert shape.distance(1.2 * window, window) == pytest.approx(0.2)
    assert math.isnan(shape.distance(window[:0], window))


def test_the_period_of_a_sawtooth_is_its_epoch_without_small_ripples():
    t = np.arange(0.0, 40.0, 0.05)
    teeth = 50 + 10 * (t % 4)
    assert shape.period(t, teeth) == pytest.approx(4.0, abs=0.06)
    assert math.isnan(shape.period(t, 50 + np.sin(t)))


def test_targets_are_judged_by_medians_over_all_and_by_the_worst_algorithm():
    found = [finding(0.01), finding(-0.02), finding(0.40, algorithm="vegas")]
    verdicts = {verdict.words: verdict for verdict in judge.verdicts(found)}
    assert verdicts["median error in goodput"].found == pytest.approx(0.02)
    assert verdicts["median error in goodput"].met
    worst = verdicts["largest median error of any algorithm in goodput"]
    assert (worst.worst, worst.met) == ("vegas", False)
    assert [(f.algorithm, figure) for f, figure, _ in judge.large(found)] == [("vegas", "goodput_bps")]


# Runs, and the results that are kept


def test_both_sides_run_the_same_file_and_finished_cells_are_kept(tmp_path):
    real, simulator = Real(), Sketch()
    outcome = runner.run(ask(tmp_path), real, "kernel", simulator=simulator)
    assert real.runs == ["reno"] * 2
    (found,) = outcome.findings
    assert found.errors["goodput_bps"] == pytest.approx(1 / 0.9 - 1)
    assert outcome.kernels == ["6.0-fake"] and len(outcome.dates) == 1
    written = (tmp_path / "scenarios/reno" / f"{CELL.name}.toml").read_text()
    assert loads(written).flows[0].cc.name == "reno"
    runner.run(ask(tmp_path), real, "kernel", simulator=simulator)
    assert len(real.runs) == 2, "no run is repeated"
    runner.run(ask(tmp_path, repetitions=1), real, "kernel", simulator=simulator)
    assert len(real.runs) == 2, "more runs are kept than requested, so no run is added"
    runner.run(ask(tmp_path, repetitions=3), real, "kernel", simulator=simulator)
    assert len(real.runs) == 3, "only the missing run is added"
    (found,) = runner.run(ask(tmp_path), None, "kernel", simulator=simulator).findings
    assert found.real.runs == 3
    folders = sorted(path.name for path in (tmp_path / "kernel/reno").iterdir())
    assert folders == [CELL.name, f"{CELL.name}.2"]
    seeds = [
        row["seed"]
        for name in folders
        for row in Results.read(tmp_path / "kernel/reno" / name).runs.to_pylist()
    ]
    assert seeds == [1, 2, 3]


def test_runs_from_before_their_scenario_named_the_buffer_that_sockets_have_are_kept(tmp_path):
    real = Real()
    runner.run(ask(tmp_path), real, "kernel", simulator=Sketch())
    path = tmp_path / "kernel/reno" / CELL.name / "metadata.json"
    metadata = json.loads(path.read_text())
    buffer = metadata["scenario"].pop("receive_buffer")
    path.write_text(json.dumps(metadata))
    runner.run(ask(tmp_path), real, "kernel", simulator=Sketch())
    assert len(real.runs) == 2
    metadata["scenario"]["receive_buffer"] = f"1{buffer}"
    path.write_text(json.dumps(metadata))
    runner.run(ask(tmp_path), real, "kernel", simulator=Sketch())
    assert len(real.runs) == 4, "a cell with another buffer needs another run"


def test_a_disturbed_run_is_not_compared_and_not_kept(tmp_path):
    disturbed = Real(disturbed=True)
    outcome = runner.run(ask(tmp_path), disturbed, "kernel", simulator=Sketch())
    assert outcome.findings == []
    assert outcome.unsound == {f"reno/{CELL.name}": 2}
    assert outcome.failed == {f"reno/{CELL.name}": "all 2 runs were disturbed: the processors were busy"}
    outcome.findings.append(finding(0.1, algorithm="bbr"))
    page_text = page.render(outcome, [], "0.1.0")
    assert "disturbed runs, left out | 2" in page_text and "all 2 runs were disturbed" in page_text
    (aside,) = outcome.marked
    assert aside.real.runs == 2
    row = f"| Reno | `{CELL.name}` | {aside.real.median('goodput_bps') / 1e6:.2f} | +11.1 % |"
    assert row in page_text, "the page shows the disturbed run with its error"
    assert "| Reno | 1 |" not in page_text, "no median includes the disturbed run"
    real = Real()
    assert len(runner.run(ask(tmp_path), real, "kernel", simulator=Sketch()).findings) == 1
    assert len(real.runs) == 2


def test_a_cell_with_disturbed_runs_only_gives_the_reason(narrows, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "real_stacks", lambda _: Real(disturbed=True))
    monkeypatch.setattr(command.sweep, "simulator", Sketch)
    args = ("--out", tmp_path / "out", "--cells", CELL.name, "--duration", "2s", "--repetitions", "2")
    code, printed, said = narrows("validate", *args, "--algorithms", "reno,cubic")
    assert (code, printed) == (2, "")
    # The command prints the reason after the run, and again at the end.
    assert f"reno/{CELL.name}: do not trust: the processors were busy (run 0, 1)" in said.splitlines()[:3]
    assert said.splitlines()[-1] == (
        f"{tmp_path / 'out'}: nothing to compare: reno/{CELL.name}: all 2 runs were disturbed: the "
        "processors were busy (and 1 more); --on vm is not disturbed by other work"
    )


def test_an_unknown_algorithm_gives_a_one_line_error_with_the_known_ones(narrows, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "real_stacks", lambda _: Real())
    monkeypatch.setattr(command.sweep, "simulator", Sketch)
    wanted = "expected an algorithm of Linux that both sides have: bbr, cubic, reno"
    for asked, found in (("bbr3", "bbr3"), ("", ""), (",", "")):
        said = narrows("validate", "--out", tmp_path / "out", "--algorithms", asked)
        assert said == (2, "", f"--algorithms: found {found!r}, {wanted}\n")


def test_runs_of_another_length_or_kernel_are_neither_compared_nor_kept(tmp_path):
    real, simulator = Real(), Sketch()
    runner.run(ask(tmp_path), real, "kernel", simulator=simulator)
    longer = Ask(tmp_path, ("reno",), (CELL,), 2, 2, "3s")
    assert runner.run(longer, None, "kernel", simulator=simulator).findings == []
    runner.run(ask(tmp_path), Newer(), "kernel", simulator=simulator)
    outcome = runner.run(ask(tmp_path), None, "kernel", simulator=simulator)
    assert outcome.kernels == ["6.1-newer"]


def test_a_truncated_line_is_ignored(tmp_path):
    runner.run(ask(tmp_path), Real(), "kernel", simulator=Sketch())
    with (tmp_path / kept.FINISHED).open("a") as file:
        file.write('null\n{"when": 5}\n{"when": "2026-')
    outcome = runner.run(ask(tmp_path), None, "kernel", simulator=Sketch())
    assert len(outcome.dates) == 1


def test_bytes_in_the_log_that_are_not_text_are_ignored(tmp_path):
    runner.run(ask(tmp_path), Real(), "kernel", simulator=Sketch())
    with (tmp_path / kept.FINISHED).open("ab") as file:
        file.write(b"\xff\xb4\x00\n")
    assert len(runner.run(ask(tmp_path), None, "kernel", simulator=Sketch()).dates) == 1


def test_a_folder_that_cannot_be_written_gives_a_one_line_error_before_anything_is_run(
    narrows, monkeypatch, tmp_path
):
    real = Real()
    monkeypatch.setattr(command, "real_stacks", lambda _: real)
    monkeypatch.setattr(command.sweep, "simulator", Sketch)
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        said = narrows("validate", "--out", out, "--cells", CELL.name, "--duration", "2s")
        assert said[:2] == (2, "") and said[2].startswith(f"{out}: cannot be written (")
        assert said[2].count("\n") == 1
    assert real.runs == []


def test_an_obstacle_inside_the_folder_names_the_cell(tmp_path):
    (tmp_path / kept.FINISHED).mkdir()
    outcome = runner.run(ask(tmp_path), Real(), "kernel", simulator=Sketch())
    assert "cannot be written" in outcome.failed[f"reno/{CELL.name}"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/scenarios").touch()
    outcome = runner.run(ask(tmp_path / "other"), Real(), "kernel", simulator=Sketch())
    assert "cannot be written" in outcome.failed[f"reno/{CELL.name}"]


def test_two_calls_in_one_folder_do_not_remove_each_others_results(tmp_path):
    real = Real()
    with kept.alone(tmp_path), pytest.raises(NarrowsError, match="another run is writing there"):
        runner.run(ask(tmp_path), real, "kernel", simulator=Sketch())
    assert real.runs == []
    assert runner.run(ask(tmp_path), real, "kernel", simulator=Sketch()).findings


def test_folders_with_names_like_ours_stay(tmp_path):
    """The command may remove only folders whose suffix consists of the digits 0 to 9."""
    for suffix in ("1x", "1\N{SUPERSCRIPT TWO}", "9"):
        (tmp_path / "kernel/reno" / f"{CELL.name}.{suffix}").mkdir(parents=True)
    kept.Kept(tmp_path, "kernel").drop(Place(tmp_path, "reno", CELL, "2s"), 0)
    left = {path.name for path in (tmp_path / "kernel/reno").iterdir()}
    assert left == {f"{CELL.name}.{suffix}" for suffix in ("1x", "1\N{SUPERSCRIPT TWO}")}


def test_more_seeds_than_a_sweep_may_have_are_refused_before_hours_of_runs(narrows, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "real_stacks", lambda _: pytest.fail("asked for real stacks"))
    for option in ("--seeds", "--repetitions"):
        code, printed, said = narrows("validate", "--out", tmp_path / "out", option, "100001")
        assert (code, printed, said.count("\n")) == (2, "", 1) and option in said


def test_a_page_that_cannot_be_written_gives_a_one_line_error(narrows, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "real_stacks", lambda _: pytest.fail("asked for real stacks"))
    said = narrows("validate", "--out", tmp_path / "out", "--write", tmp_path)
    assert said == (2, "", f"--write: found {str(tmp_path)!r}, expected a file in an existing folder\n")
    monkeypatch.setattr(command, "real_stacks", lambda _: Real())
    monkeypatch.setattr(command.sweep, "simulator", Sketch)
    (tmp_path / "img").touch()  # because of this file, the folder for pictures cannot be made
    args = ("--out", tmp_path / "out", "--cells", CELL.name, "--duration", "2s", "--algorithms", "reno")
    code, _, said = narrows("validate", *args, "--no-figures", "--write", tmp_path / "page.md")
    assert code == 2 and said.splitlines()[-1] == f"{tmp_path / 'img'}: File exists"
    assert not (tmp_path / "page.md").exists()


def test_runs_without_soundness_give_a_one_line_error(tmp_path):
    runner.run(ask(tmp_path), Real(), "kernel", simulator=Sketch())
    path = tmp_path / "kernel/reno" / CELL.name / "metadata.json"
    metadata = json.loads(path.read_text())
    for told in ({"0": {}}, {"0": None}, []):
        path.write_text(json.dumps(metadata | {"soundness": told}))
        with pytest.raises(NarrowsError, match="expected for each run whether it was sound"):
            runner.run(ask(tmp_path), None, "kernel", simulator=Sketch())


def test_a_failing_cell_does_not_stop_others(tmp_path):
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


def test_the_causes_are_valid_and_refer_to_existing_cells():
    names = [cell.name for cell in grid.full()]
    for cause in causes.read():
        assert cause.cause and cause.known
        assert any(causes.fnmatchcase(name, cause.cell) for name in names), cause.cell
        assert any(causes.fnmatchcase(name, cause.algorithm) for name in runner.linux()), cause.algorithm


def test_a_cause_with_a_wrong_key_gives_a_one_line_error(tmp_path):
    path = tmp_path / "causes.toml"
    path.write_text('[[causes]]\ncause = "a"\nknown = "b"\nalgoritm = "reno"\n')
    with pytest.raises(NarrowsError, match="found keys cause, known, algoritm, expected cause, known"):
        causes.read(path)


def test_errors_beyond_the_scale_are_framed_and_every_one_can_be_read():
    found = [finding(0.01), finding(0.33, algorithm="vegas"), finding(-4.99, algorithm="bbr")]
    figure = charts.errors_map(found)
    assert "larger errors have a frame" in figure.caption
    assert [panel.title for panel in figure.panels] == ["Goodput: error (%)", "Mean RTT: error (%)"]
    cells = {row["t"]: row for row in figure.panels[0].chart.to_dict()["data"]["values"]}
    assert {text: row["beyond"] for text, row in cells.items()} == {"+1": False, "+33": True, "-499": True}
    assert all(contrast(row["k"], row["f"]) >= 4.5 for row in cells.values())


def test_the_figures_have_an_index_with_a_sentence_each(tmp_path):
    charts.write([finding(0.1), finding(-0.2, algorithm="cubic")], tmp_path)
    entries = folder.read(tmp_path)
    sentences = {Path(entry.file).stem: entry.summary for entry in entries if entry.file.endswith(".svg")}
    assert sentences == {
        "boxes": "The spread of each algorithm's errors over its cells.",
        "errors": "Error of the simulator, (simulated - real) / real, in percent.",
    }
    page = html.unescape((tmp_path / folder.PAGE).read_text())
    assert all(sentence in page for sentence in sentences.values())
    assert all((tmp_path / entry.file).exists() for entry in entries)


def test_windows_under_the_same_losses_are_drawn_if_both_sides_have_them():
    lossy = Cell(20, 20, 1.0, 0.5, Flows.SINGLE)
    t = np.arange(2.0, 20.0, 0.05)
    figures = {"goodput_bps": [1e7], "rtt_mean_s": [0.03]}
    both = Side(figures, [(t, 10 + t)], [1])
    found = [Finding(name, cell, "near", both, both) for name in ("bbr", "reno") for cell in (CELL, lossy)]
    figure = charts.same_losses(found)
    assert figure is not None and [panel.title for panel in figure.panels] == ["Reno", "BBR"]
    spec = figure.panels[0].chart.to_dict()
    assert max(row["x"] for row in spec["data"]["values"]) <= 8.0
    assert charts.same_losses(found[:1]) is None, "flows without losses have no losses in common"
    assert "seed 1" in figure.caption and lossy.name in figure.caption


def test_the_windows_on_the_page_are_of_one_cell_and_one_seed():
    cells = [Cell(rate, 20, 1.0, 0.5, Flows.SINGLE) for rate in (20, 100)]
    t = np.arange(2.0, 20.0, 0.05)

    def ran(seed: int) -> Side:
        return Side({"goodput_bps": [1e7]}, [(t, 10 + t)], [seed])

    found = [Finding(name, cells[0], "near", ran(1), ran(1)) for name in ("bbr", "reno")]
    found.append(Finding("reno", cells[1], "near", ran(1), ran(1)))
    found.append(Finding("vegas", cells[0], "near", ran(2), ran(2)))
    figure = charts.same_losses(found)
    assert figure is not None and [panel.title for panel in figure.panels] == ["Reno", "BBR"]
    assert cells[0].name in figure.caption


def test_with_equal_losses_runs_of_equal_seeds_are_compared(tmp_path):
    lossy = Cell(20, 20, 1.0, 0.5, Flows.SINGLE)

    class Second(Real):
        """Real stacks whose run with seed 1 is disturbed."""

        def run(self, plan: Any) -> dict[str, Any]:
            self.disturbed = plan["seed"] == 1
            return super().run(plan)

    asked = Ask(tmp_path, ("reno",), (lossy,), 3, 7, "2s")
    outcome = runner.run(asked, Second(), "kernel", simulator=Sketch())
    (found,) = outcome.findings
    assert found.real.seeds == found.model.seeds == [2, 3]
    assert outcome.unsound == {f"reno/{lossy.name}": 1}


def test_the_page_lists_missing_cells_and_unexplained_errors():
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
    assert lines[0].endswith("| **+50.0** % | 1 |")
    assert "1. two modes. *seeds have both.*" in text
    assert "**not explained**" in lines[1]
    assert "- **ns-3** runs the same cells" in text
    assert "ns-3" not in page.render(outcome, [known], "0.1.0")


def test_an_error_has_the_simulated_value_with_the_real_seeds():
    lossy = Cell(20, 20, 1.0, 0.5, Flows.RTTS)
    real = Side({"goodput_bps": [1e6]}, seeds=[2])
    model = Side({"goodput_bps": [2e6, 1.1e6, 2.2e6]}, [(np.zeros(0), np.zeros(0))] * 3, [1, 2, 3])
    findings = [Finding("reno", lossy, "far", model, real)]
    asked = Ask(Path("out"), ("reno",), (lossy,), 1, 3, "20s")
    text = page.render(runner.Outcome(asked, "vm", findings), [], "0.1.0")
    (line,) = [line for line in text.splitlines() if "not explained" in line]
    assert "| 1.00 Mbit/s (1.00 to 1.00) | 2.00 (1.10 to 2.20) | 1.10 | **+100.0** % |" in line
    assert "(1 figures), the median error in goodput is 100.0 %. With only those simulated" in text
    assert "seeds as the real runs, the median error is 10.0 %." in text


def test_the_page_tells_one_flow_from_two():
    far = Cell(20, 20, 1.0, 0.0, Flows.RTTS)
    findings = [finding(0.1), finding(-0.2), finding(0.3, cell=far), finding(0.5, cell=far, flow="far")]
    outcome = runner.Outcome(Ask(Path("out"), ("reno",), (CELL, far), 1, 1, "20s"), "kernel", findings)
    text = page.render(outcome, [], "0.1.0")
    rows = [
        line.split(" | ")[:3] for line in text.splitlines() if line.startswith("| `") and "mbit" not in line
    ]
    assert rows == [
        ["| `single`", "2", "15.0"],
        ["| `rtts`, near", "1", "30.0"],
        ["| `rtts`, far", "1", "50.0"],
    ]
    assert "$ sudo narrows validate --on kernel" in text
    overview = page.Picture("img/all.svg", "Errors.")
    assert (
        "Errors.\n\n![" in (drawn := page.render(outcome, [], "0.1.0", overview=overview))
        and "img/all.svg" in drawn
    )
    outcome.backend = "vm"
    assert "$ narrows validate --on vm" in page.render(outcome, [], "0.1.0")
