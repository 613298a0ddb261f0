"""Parts of a study's page: networks, tables, grades, identical runs, captions and keys."""

from __future__ import annotations

import re
from typing import Any

import pytest
from narrows.report import build, export, figure
from narrows.report.claims import claim_rows
from narrows.report.kinds.heat import PERCENT, SHARE, Sides, Value, heat_map
from narrows.report.paper import paper_table
from narrows.report.study import figures
from narrows.studies import Runs, Verdict, find_study, judge, load_study
from narrows.studies.identical import same_in_experiment, same_in_two
from narrows.studies.load import known_studies
from narrows.studies.model import TableSpec
from narrows.studies.printed import printed_rows
from narrows.studies.runner import Outcome, Real, run_study
from sketch import Sketch
from test_judge import a_claim, a_run

BRF = load_study(find_study("brf"))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("study")
    return run_study(BRF, folder, quick=True, only=["E2", "E3"], backend=Sketch())


# --- networks


def test_the_network_of_each_experiment_is_its_first_figure(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure, "VALIDATE", True)
    drawn = figures(outcome)
    assert [group[0].id for group in drawn.values()] == ["network-E2", "network-E3"]
    first = drawn["E2"][0]
    names = set(re.findall(r'"t": ?"([^"]+)"', str(first.specs()).replace("'", '"')))
    assert {"S1", "S2", "R0", "R1", "R2", "C1"} <= names
    assert any("Mbit/s" in name or "ms" in name for name in names)
    assert 'id="fig-network-E2"' in build(outcome)


@pytest.mark.parametrize("name", known_studies())
def test_every_network_of_the_library_can_be_drawn(name: str) -> None:
    study = load_study(find_study(name))
    empty = Outcome(study, True, {e.id: Runs([]) for e in study.experiments}, [])
    no_figures = study.model_copy(update={"figures": []})
    drawn = figures(Outcome(no_figures, True, empty.runs, []))
    for experiment in study.experiments:
        assert [f.id for f in drawn[experiment.id]] == (
            [f"network-{experiment.id}"] if experiment.scenario else []
        )


# --- tables of a paper


def a_table(**more: Any) -> TableSpec:
    columns = [{"title": "Rate", "measure": "goodput", "args": {"flows": "long"}, **more}]
    return TableSpec(**{"id": "t", "experiment": "E", "title": "Table 9", "columns": columns})


def an_outcome(**runs: Runs) -> Outcome:
    return Outcome(BRF, True, dict(runs), [])


def test_a_table_of_the_paper_has_its_values_beside_ours() -> None:
    runs = Runs([a_run(name, seed, 90 + seed) for name in ("bbr", "brf", "reno") for seed in (1, 2, 3)])
    table = paper_table(a_table(paper={"brf": 95.5, "bbr": "about 80"}), an_outcome(E=runs))
    assert table is not None and table.title == "Table 9"
    rows = [[cell.text for cell in row] for row in table.rows]
    assert rows == [["BBR", "about 80", "92"], ["BRF", "95.5", "92"]]
    assert table.rows[0][2].half.endswith("2.48")
    assert [column.unit for column in table.columns] == ["", "paper", "measured, Mbit/s"]
    assert paper_table(a_table(paper={"xcp": 1.0}), an_outcome(E=runs)) is None
    assert paper_table(a_table(paper={"brf": 1.0}), an_outcome()) is None


def test_a_table_has_a_row_of_its_own_for_runs_on_real_stacks() -> None:
    runs = Runs([a_run(name, seed, 90 + seed) for name in ("bbr", "brf") for seed in (1, 2, 3)])
    outcome = an_outcome(E=runs)
    outcome.real = Real(runs={"E": Runs([a_run("bbr", seed, 80 + seed) for seed in (1, 2, 3)])}, backend="vm")
    table = paper_table(a_table(), outcome)
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["BBR", "92"],
        ["BRF", "92"],
        ["BBR, guest", "82"],
    ]


def test_a_table_may_take_the_papers_values_from_its_file() -> None:
    runs = Runs([a_run(name, seed, 90 + seed) for name in ("bbr", "vegas") for seed in (1, 2)])
    survey = load_study(find_study("survey"))
    printed = printed_rows(survey.folder / "table1.csv")
    spec = a_table(printed="throughput_mbit").model_copy(update={"printed": "T1"})
    table = paper_table(spec, an_outcome(E=runs, T1=printed))
    assert table is not None
    assert [row[1].text for row in table.rows] == ["802", "1,150"]  # in the legends' order


def test_a_paper_without_its_table_leaves_the_rows_out() -> None:
    runs = Runs([a_run("bbr", 1, 90)])
    assert paper_table(a_table(printed="x").model_copy(update={"printed": "T1"}), an_outcome(E=runs)) is None


def test_a_column_without_values_of_a_paper_has_ours_alone() -> None:
    runs = Runs([a_run(name, seed, 90 + seed) for name in ("bbr", "brf") for seed in (1, 2, 3)])
    ours = paper_table(a_table(), an_outcome(E=runs))
    assert ours is not None and [column.unit for column in ours.columns] == ["", "Mbit/s"]
    assert [[cell.text for cell in row] for row in ours.rows] == [["BBR", "92"], ["BRF", "92"]]
    assert ours.rows[0][1].half.endswith("2.48")
    alike = Runs([a_run("bbr", seed, 90 + 1e-3 * seed) for seed in (1, 2, 3)])
    narrow = paper_table(a_table(), an_outcome(E=alike))
    assert narrow is not None and [cell.half for cell in narrow.rows[0]] == ["", ""]
    beside = a_table(paper={"brf": 95.5})
    both = beside.model_copy(update={"columns": [*beside.columns, *a_table().columns]})
    table = paper_table(both, an_outcome(E=runs))
    assert table is not None and [[cell.text for cell in row] for row in table.rows] == [
        ["BRF", "95.5", "92", "92"]
    ]


# --- grades


def graded(goodputs: dict[float, float], **more: Any) -> Any:
    claim = a_claim(a={"where": {"algorithm": "brf"}}, expect={"at_least": 50.0}, **more)
    runs = Runs(a_run("brf", 1, goodput, loss=loss) for loss, goodput in goodputs.items())
    return judge(claim, {"E": runs})


def test_a_claim_that_fails_in_one_of_many_cases_is_graded() -> None:
    finding = graded({0.1: 90, 0.2: 80, 0.3: 40})
    assert finding.verdict is Verdict.NOT_REPRODUCED and finding.grade == "holds in 2 of 3 cases"
    (row,) = claim_rows([finding], set())
    assert (row.css, row.grade) == ("part", "holds in 2 of 3 cases")
    assert row.why == "Loss 0.3: smallest of 1 runs: 40, 50 needed."  # the grade has the count
    (row,) = claim_rows([graded({0.1: 40, 0.2: 30})], set())
    assert (row.css, row.grade) == ("no", "holds in 0 of 2 cases")
    (row,) = claim_rows([graded({0.1: 90})], set())
    assert (row.css, row.grade) == ("yes", "")
    some = graded({0.1: 90, 0.2: float("nan")})
    assert some.grade == "holds in 1 of 2 cases, 1 open"
    (row,) = claim_rows([graded({0.1: 90, 0.2: 30}, across="any")], set())
    assert (row.css, row.grade) == ("yes", "holds in 1 of 2 cases")


# --- identical runs


def points(goodput: Any, seeds: tuple[int, ...] = (1, 2)) -> Runs:
    return Runs(
        a_run("brf", seed, goodput(seed, loss), loss=loss, place=place)
        for loss in (0.01, 0.1)
        for place in (1.0, 2.0)
        for seed in seeds
    )


def test_identical_runs_are_noticed_whatever_claims_use_them() -> None:
    assert same_in_experiment(points(lambda seed, loss: 90 + seed + loss)) == [
        "the runs with place 1 and 2 are identical"
    ]
    assert same_in_experiment(points(lambda seed, loss: 90 + loss)) == [
        "the runs with place 1 and 2 are identical",
        "all seeds give the same run",
    ]
    mixed = points(lambda seed, loss: 90 + loss + (seed if loss == 0.1 else 0))
    assert same_in_experiment(mixed)[1] == "all seeds give the same run at 2 of 4 points"
    assert same_in_experiment(points(lambda seed, loss: 90 + loss, seeds=(1,)))[1:] == []
    survey = load_study(find_study("survey"))
    assert same_in_experiment(printed_rows(survey.folder / "table1.csv")) == []


def test_identical_runs_of_two_experiments_are_noticed() -> None:
    one = points(lambda seed, loss: 90 + seed + loss)
    other = Runs([*one[:2], a_run("brf", 1, 10, loss=0.5, place=1.0)])
    assert same_in_two({"A": one, "B": other}) == ["1 of 2 points of A have the same runs as points of B"]
    assert same_in_two({"A": one}) == []


# --- captions and keys


def test_an_exported_figure_has_its_caption(outcome: Outcome) -> None:
    (shown,) = [item for item in figures(outcome)["E2"] if item.id == "rtt-fairness-jain"]
    title = shown.spec()["title"]
    assert title["orient"] == "bottom" and title["text"] == shown.title
    assert " ".join(title["subtitle"]) == shown.caption
    assert max(map(len, title["subtitle"])) < 160
    words = re.sub(r"<[^>]+>", " ", export.svg(shown))
    assert "Jain's index of the goodputs of both flows." in words.replace("&#39;", "'")


def test_the_shades_of_a_heat_map_have_a_key() -> None:
    values = [Value("a", "b", 0.5, 0.1, "50")]
    shown = heat_map("h", "Share", "c", Sides(["a"], ["b"]), values, SHARE, PERCENT)
    assert [key.label.replace("\N{NO-BREAK SPACE}", " ") for key in shown.keys] == [
        "0 % and less",
        "25 %",
        "50 %",
        "75 %",
        "100 % and more",
    ]
    assert [key.look.light for key in shown.keys][::2] == [SHARE.fill(v) for v in (0.0, 0.5, 1.0)]
    assert shown.spec()["vconcat"]
