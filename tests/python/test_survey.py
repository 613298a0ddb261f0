"""The study `survey`: its table, its claims, and its figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrows.errors import NarrowsError
from narrows.report.encode import CUT
from narrows.report.kinds import draw
from narrows.report.kinds.heat import SHARE, number_text
from narrows.report.kinds.ranking import places
from narrows.report.shade import Ramp
from narrows.results.measures import find_measure
from narrows.scenario.load import expand
from narrows.studies import Run, Runs, Verdict, find_study, judge, load_study, measure_run, runner
from narrows.studies.model import FigureSpec
from narrows.studies.printed import printed_rows
from test_judge import a_claim, a_run

STUDY = load_study(find_study("survey"))
FIFTEEN = [
    *("bbr", "bic", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "reno", "scalable"),
    *("vegas", "veno", "westwood", "yeah"),
]


def table() -> Runs:
    return printed_rows(STUDY.folder / "table1.csv")


def test_the_table_has_the_fifteen_rows_and_claims_are_judged_on_it_without_a_simulator(
    tmp_path: Path,
) -> None:
    assert table().values("algorithm") == FIFTEEN
    outcome = runner.run_study(STUDY, tmp_path, only=["T1"])
    verdicts = {finding.claim.id: finding for finding in outcome.findings}
    assert verdicts["T1"].verdict is Verdict.NOT_REPRODUCED
    repeating = [dict(c.factors)["algorithm"] for c in verdicts["T1"].cases if c.most > 0]
    assert repeating == ["dctcp", "reno", "scalable", "veno", "westwood"]  # SUR-30
    assert "identical" not in verdicts["T1"].why
    assert list(tmp_path.iterdir()) == []


def test_a_window_per_rtt_is_the_most_that_a_row_may_claim() -> None:
    bic = table().where({"algorithm": "bic"})[0]
    columns = {"window": "cwnd", "rtt": "rtt", "throughput": "throughput_mbit"}
    ratio = measure_run(
        "printed_window_rate", bic, **columns, rtt_unit_s=1e-3, window_unit_bytes=1448.0
    ).value
    assert ratio * 1181.17 == pytest.approx(20.8, abs=0.05)  # SUR-32
    with pytest.raises(NarrowsError, match="nearest is 'cwnd'"):
        measure_run("printed", bic, column="cwn")


def test_a_broken_table_gives_a_one_line_error(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("controller,cwnd\nbbr,many\n")
    with pytest.raises(NarrowsError, match="expected a table of a paper"):
        printed_rows(path)


def test_each_of_the_fifteen_runs_alone_and_against_cubic_at_every_point() -> None:
    for identity, points in (("S2", 18), ("S3", 18), ("S4", 18), ("S5", 6)):
        scenario, _ = runner.prepare(STUDY, STUDY.experiment(identity), quick=False)
        runs = expand(scenario, seeds=1)
        names = {str(run.factors["case"]) for run in runs}
        assert names - {"alone"} == set(FIFTEEN)
        assert len(runs) == points * len(names)
        for run in runs:
            ccs = {flow.cc.name for flow in run.scenario.flows}
            case = str(run.factors["case"])
            assert ccs == (
                {"cubic"} if case == "alone" else {case} | ({"cubic"} if len(names) > 15 else set())
            )
            marks = run.scenario.raw()["links"][-2]["queue"]["kind"] == "threshold"
            assert marks == (case == "dctcp")


# --- one against all others


RIVALS = {
    "E": Runs(
        [
            a_run(name, seed, base + seed, loss=loss)
            for name, base in (("brf", 90), ("bbr", 80), ("reno", 95))
            for loss in (0.01, 0.1)
            for seed in (1, 2, 3)
        ]
    )
}


def against_all(**expect: Any) -> Any:
    return a_claim(
        a={"where": {"algorithm": "brf"}},
        b={"where": {"algorithm": "*"}},
        compare="difference",
        expect=expect,
    )


def test_a_star_is_every_other_value_a_case_each() -> None:
    finding = judge(against_all(above=0.0), RIVALS)
    assert [dict(case.factors)["algorithm"] for case in finding.cases] == ["bbr", "bbr", "reno", "reno"]
    assert [round(case.interval.mean) for case in finding.cases] == [10, 10, -5, -5]
    assert finding.verdict is Verdict.NOT_REPRODUCED
    assert judge(against_all(above=-6.0), RIVALS).verdict is Verdict.REPRODUCED


def test_a_star_needs_one_on_the_other_side() -> None:
    claim = a_claim(b={"where": {"algorithm": "*"}}, compare="difference", expect={"above": 0.0})
    with pytest.raises(NarrowsError, match="needs one algorithm"):
        judge(claim, RIVALS)


# --- figures


def spec(kind: str, **args: Any) -> FigureSpec:
    return FigureSpec(id="f", experiment="E", kind=kind, title="T", caption="C", args=args)


def test_a_ranking_has_a_range_of_places_if_intervals_overlap() -> None:
    close = Runs(
        [
            a_run(name, seed, base + spread * seed)
            for name, base, spread in (("brf", 90, 5), ("bbr", 91, 5), ("reno", 10, 1))
            for seed in (1, 2, 3)
        ]
    )
    ranked = places(close, {"y": "goodput", "measure": {"flows": "long"}})
    assert [(p.algorithm, p.best, p.worst) for p in ranked] == [
        ("bbr", 1, 2),
        ("brf", 1, 2),
        ("reno", 3, 3),
    ]
    least = places(close, {"y": "goodput", "measure": {"flows": "long"}, "less": True})
    assert [p.algorithm for p in least] == ["reno", "brf", "bbr"]


def test_the_mean_of_a_ranking_is_over_points_and_its_interval_over_seeds() -> None:
    ranked = places(RIVALS["E"], {"y": "goodput", "measure": {"flows": "long"}})
    assert [(p.algorithm, p.interval.mean, p.interval.n) for p in ranked] == [
        ("reno", 97.0, 3),
        ("brf", 92.0, 3),
        ("bbr", 82.0, 3),
    ]


def test_a_ranking_may_be_of_the_points_of_one_loss_rate() -> None:
    lossy = [replace(run, factors=run.factors | {"loss": 0.01}) for run in RIVALS["E"] if run.seed != 3]
    clean = [replace(run, factors=run.factors | {"loss": 0.0}) for run in RIVALS["E"]]
    ranked = places(
        Runs(lossy + clean), {"y": "goodput", "measure": {"flows": "long"}, "where": {"loss": 0.01}}
    )
    assert [(p.algorithm, p.interval.n) for p in ranked] == [("reno", 2), ("brf", 2), ("bbr", 2)]


def test_harm_is_relative_to_the_run_alone_at_the_same_point_and_seed() -> None:
    column = {"y": "goodput", "measure": {"flows": "long"}, "harm": "reno", "less": True}
    ranked = places(RIVALS["E"], column, without=["reno"])
    expected = np.mean([1 - (90 + seed) / (95 + seed) for seed in (1, 2, 3)])
    assert ranked[0].algorithm == "brf"
    assert ranked[0].interval.mean == pytest.approx(expected)


@pytest.mark.parametrize(
    "figure",
    [
        spec("heat", y="goodput", columns=["loss"], scale=[0, 50, 100]),
        spec("heat", y="goodput", columns=["loss"], scale=[100, 50, 0], times=2),
        spec("ranking", columns=[{"y": "goodput", "rule": 100.0}]),
    ],
)
def test_the_figures_are_valid(figure: FigureSpec) -> None:
    drawn = draw(figure, RIVALS["E"])
    assert drawn.panels
    drawn.panels[0].chart.to_dict(validate=True)


@pytest.mark.parametrize(
    ("how", "unit", "texts"), [({}, "Mbit/s", {"0.9", "0.8"}), ({"percent": True}, "%", {"90", "80"})]
)
def test_a_heat_map_in_percent_has_a_unit_and_the_same_colours(
    how: dict[str, bool], unit: str, texts: set[str]
) -> None:
    runs = Runs([a_run("brf", 1, 0.9, loss=0.1), a_run("bbr", 1, 0.8, loss=0.1)])
    args = {"measure": {"flows": "long"}, "columns": ["loss"], "scale": [0, 0.5, 1], **how}
    drawn = draw(spec("heat", y="goodput", **args), runs)
    rows = drawn.panels[0].chart.to_dict()["data"]["values"]
    assert {row["t"] for row in rows} == texts
    ramp = Ramp(0, 0.5, 1, SHARE.colours)
    assert {row["f"] for row in rows} == {ramp.fill(0.9), ramp.fill(0.8)}, (
        "the colour depends on the value, not on the text of the cell"
    )
    assert drawn.panels[0].title.endswith(f"({unit})")


def test_small_charts_share_their_axes_and_follow_the_families() -> None:
    def run(name: str, peak: float) -> Run:
        t = np.arange(1, 21) / 10
        samples = {"flow": np.zeros(20), "t_s": t, "cwnd": np.linspace(1, peak, 20)}
        flows = {"flow": np.array([0]), "name": ["a"], "cc": [name], "source": ["a"]}
        return Run({"algorithm": name}, 1, {"flows": flows, "flow_samples": samples})

    drawn = draw(spec("multiples", quantity="cwnd"), Runs([run("bbr", 50), run("cubic", 100)]))
    assert [panel.title for panel in drawn.panels] == ["CUBIC", "BBR"]
    domains = [panel.chart.to_dict(validate=True)["layer"][0]["encoding"]["y"] for panel in drawn.panels]
    assert domains[0]["scale"]["domain"] == domains[1]["scale"]["domain"]
    assert "beyond the frame" not in drawn.caption
    binned = draw(spec("multiples", quantity="cwnd", bin_s=0.5), Runs([run("bbr", 50)])).panels[0]
    line = binned.chart.to_dict()["layer"][0]
    assert [row["t"] for row in line.get("data", binned.chart.to_dict().get("data"))["values"]] == [
        0.25,
        0.75,
        1.25,
        1.75,
    ]
    assert line["encoding"]["x"]["scale"]["domain"] == [0, 2]


def test_small_charts_say_that_a_burst_leaves_them() -> None:
    t = np.arange(1, 1001) / 100
    samples = {"flow": np.zeros(1000), "t_s": t, "cwnd": np.where(t == 5, 900.0, 10.0)}
    flows = {"flow": np.array([0]), "name": ["a"], "cc": ["bbr"], "source": ["a"]}
    runs = Runs([Run({"algorithm": "bbr"}, 1, {"flows": flows, "flow_samples": samples})])
    assert draw(spec("multiples", quantity="cwnd"), runs).caption.endswith(CUT)


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0.04"), (-0.0, "0"), (9.87, "10"), (4.44, "4.4"), (-12.3, "\N{MINUS SIGN}12")]
)
def test_numbers_in_cells(value: float, text: str) -> None:
    assert number_text(value) == text


def test_measures_from_the_rtt_are_not_named_after_a_queue() -> None:
    """The queueing delay of `narrows report` is the time in a link's queue. RTTs also contain ACK delays."""
    name = "RTT above the empty path's"
    assert find_measure("queueing_delay").title == name
    said = [figure.title + str(figure.args) for figure in STUDY.figures] + [c.says for c in STUDY.claims]
    assert not [text for text in said if "queueing delay" in text.lower()]
    page = (Path(__file__).parents[2] / "docs/explanation/survey.md").read_text()
    assert page.count(f"| {name}, mean, ms |") == 4 and "queueing delay" not in page.lower()
