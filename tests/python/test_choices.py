"""Verdicts that depend on inputs that a paper does not give, or on how a paper is interpreted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from narrows.errors import NarrowsError
from narrows.report.claims import claim_rows
from narrows.studies import Claim, Experiment, Runs, Study, Verdict, find_study, load_study, runner
from narrows.studies.choices import judge_choices, with_input
from narrows.studies.load import known_studies, read_scenario
from narrows.studies.model import FreeInput, Reading
from narrows.studies.readings import by_reading, second_reading, words_of
from pydantic import ValidationError
from sketch import Sketch
from test_judge import a_claim, a_run

CHOICE = {"id": "loss", "key": "links.0.loss", "ours": "1%", "others": ["0%", "5%"], "why": "w"}


def an_experiment(**more: Any) -> Experiment:
    return Experiment(id="E", title="T", scenario="e.toml", free=[FreeInput(**{**CHOICE, **more})])


def over(goodputs: dict[Any, float], name: str = "loss", **factors: Any) -> Runs:
    """Runs of one algorithm, with two seeds for each value of an input."""
    return Runs(
        a_run("bbr", seed, goodput + 0.1 * seed, **factors, **{name: value})
        for value, goodput in goodputs.items()
        for seed in (1, 2)
    )


def own(goodput: float, **factors: Any) -> dict[str, Runs]:
    return {"E": Runs(a_run("bbr", seed, goodput + 0.1 * seed, **factors) for seed in (1, 2))}


ABOVE = a_claim(a={"where": {"algorithm": "bbr"}}, expect={"above": 50.0})


@pytest.mark.parametrize(
    ("elsewhere", "verdict", "said"),
    [
        ({0.0: 40, 0.05: 90}, Verdict.UNJUDGED, "it holds with 1% and 5%, it does not hold with 0%"),
        ({0.0: 80, 0.05: 90}, Verdict.REPRODUCED, "no other verdict with loss 0% or 5%"),
        # With loss 0 %, the claim cannot be judged. The verdicts with all other values are still used.
        (
            {0.0: 49.85, 0.05: 90},
            Verdict.REPRODUCED,
            "no other verdict with loss 5%; cannot be judged with loss 0%",
        ),
        ({0.0: 49.85, 0.05: 49.85}, Verdict.REPRODUCED, "cannot be judged with loss 0% or 5%"),
    ],
)
def test_a_verdict_that_depends_on_our_choice_is_none(
    elsewhere: dict[float, float], verdict: Verdict, said: str
) -> None:
    finding = judge_choices(ABOVE, an_experiment(), own(90), {"loss": over(elsewhere)})
    assert finding.verdict is verdict
    assert finding.why.endswith(said)
    alone = judge_choices(ABOVE, an_experiment(), own(90), {})
    assert alone.verdict is Verdict.REPRODUCED
    assert alone.why.endswith("not run with other values of loss, which is our choice")


def test_an_open_verdict_is_not_called_the_same_as_a_decided_one() -> None:
    finding = judge_choices(ABOVE, an_experiment(), own(49.85), {"loss": over({0.0: 49.85, 0.05: 90})})
    assert finding.verdict is Verdict.UNJUDGED
    assert finding.why.endswith("; not decided either with loss 0%; decided with loss 5%")


def test_only_the_case_that_depends_on_our_choice_has_no_verdict() -> None:
    runs = {"E": Runs([*own(90, buffer=10.0)["E"], *own(90, buffer=20.0)["E"]])}
    varied = {"loss": Runs([*over({0.0: 40}, buffer=10.0), *over({0.0: 80}, buffer=20.0)])}
    every = judge_choices(ABOVE, an_experiment(), runs, varied)
    assert [case.verdict for case in every.cases] == [Verdict.UNJUDGED, Verdict.REPRODUCED]
    assert every.verdict is Verdict.UNJUDGED
    some = judge_choices(ABOVE.model_copy(update={"across": "any"}), an_experiment(), runs, varied)
    assert some.verdict is Verdict.REPRODUCED
    # If one case fails with each value of the input, the claim fails.
    failing = {"E": Runs([*own(90, buffer=10.0)["E"], *own(20, buffer=20.0)["E"]])}
    assert judge_choices(ABOVE, an_experiment(), failing, varied).cases[1].verdict is Verdict.UNJUDGED
    low = {"loss": Runs([*over({0.0: 40}, buffer=10.0), *over({0.0: 20}, buffer=20.0)])}
    assert judge_choices(ABOVE, an_experiment(), failing, low).verdict is Verdict.NOT_REPRODUCED


def test_a_factor_or_an_argument_may_be_our_choice() -> None:
    runs = {"E": over({100.0: 90, 10.0: 40}, "buffer")}
    at_our_buffer = a_claim(a={"where": {"algorithm": "bbr", "buffer": 100}}, expect={"above": 50.0})
    buffer = an_experiment(id="buffer", key="", factor="buffer", ours=100, others=[10])
    finding = judge_choices(at_our_buffer, buffer, runs, {})
    assert finding.verdict is Verdict.UNJUDGED and finding.why.endswith("it does not hold with 10")
    # A claim about all buffers does not depend on the choice of one buffer.
    assert judge_choices(ABOVE, buffer, runs, {}).verdict is Verdict.NOT_REPRODUCED

    # The first flow has 90 Mbit/s, and the second flow has 40 Mbit/s.
    flows = an_experiment(id="flows", key="", arg="flows", ours="long", others=["short"])
    assert judge_choices(ABOVE, flows, own(90), {}).verdict is Verdict.UNJUDGED
    elsewhere = ABOVE.model_copy(update={"args": {"flows": "*"}})
    assert judge_choices(elsewhere, flows, own(90), {}).verdict is Verdict.REPRODUCED


def test_a_figure_shows_our_value_and_the_others() -> None:
    item = FreeInput(**CHOICE)
    every = with_input(item, [*own(90)["E"], a_run("reno", 1, 10)], over({0.0: 40, 0.05: 80}))
    assert [(run.factors["algorithm"], run.factors["loss"]) for run in every] == [
        *[("bbr", 0.01)] * 2,
        *[("bbr", 0.0)] * 2,
        *[("bbr", 0.05)] * 2,
    ]


@pytest.mark.parametrize("more", [{"factor": "buffer"}, {"key": ""}, {"others": []}])
def test_a_free_input_is_one_thing_with_other_values(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FreeInput(**{**CHOICE, **more})


def test_every_free_input_of_the_library_has_the_value_of_the_scenario() -> None:
    """If the values differed, the report would state a value that no run had."""
    seen = 0
    for name in known_studies():
        study = load_study(find_study(name))
        for experiment in study.experiments:
            for item in experiment.free:
                if item.key and "*" not in item.key:
                    place: Any = read_scenario(study.folder, experiment)
                    for part in item.key.split("."):
                        place = _part(place, part)
                    assert runner.factor(place) == runner.factor(item.ours), (name, experiment.id, item.id)
                    seen += 1
                if item.arg:
                    used = [claim.args.get(item.arg) for claim in _claims(study, experiment)]
                    assert item.ours in used, (name, experiment.id, item.id)
                if item.factor:
                    named = str([claim.model_dump() for claim in _claims(study, experiment)])
                    assert str(item.ours) in named, (name, experiment.id, item.id)
    assert seen > 3


def _part(place: Any, part: str) -> Any:
    if not isinstance(place, list):
        return place[part]
    return place[int(part)] if part.isdigit() else next(item for item in place if item.get("name") == part)


def _claims(study: Study, experiment: Experiment) -> list[Claim]:
    return [claim for claim in study.claims if claim.experiment == experiment.id]


# --- both readings


READINGS = [Reading(repaired="brf", printed="brf-literal")]


def test_a_claim_of_the_paper_is_also_judged_on_the_algorithm_as_printed() -> None:
    claim = a_claim(
        a={"where": {"algorithm": ["bbr", "brf"], "loss": 0.1}},
        b={"where": {"algorithm": "brf"}},
        compare="ratio",
        expect={"above": 1.0},
    )
    other = second_reading(claim, READINGS)
    assert other is not None and other.b is not None
    assert other.a.where == {"algorithm": ["bbr", "brf-literal"], "loss": 0.1}
    assert other.b.where == {"algorithm": "brf-literal"}
    assert second_reading(ABOVE, READINGS) is None
    assert second_reading(claim.model_copy(update={"group": "ours"}), READINGS) is None


def test_both_readings_are_counted(tmp_path: Path) -> None:
    study = load_study(find_study("brf"))
    outcome = runner.run_study(study, tmp_path, quick=True, only=["E3", "E4"], backend=Sketch())
    second = {finding.claim.id for finding in outcome.second}
    assert {"C13", "C14"} <= second and not second & {"C10", "C15", "O3"}
    groups = dict(by_reading(outcome.findings, outcome.second, study.readings))
    assert list(groups) == ["repaired", "as printed"]
    assert [f.claim.id for f in groups["repaired"]] == [f.claim.id for f in groups["as printed"]]
    assert all(finding.claim.group == "paper" for finding in groups["repaired"])
    rows = {row.id: row for row in claim_rows(outcome.findings, set(), (), outcome.second)}
    assert rows["C13"].second is not None and rows["C10"].second is None
    assert by_reading(outcome.findings, [], study.readings) == [("", groups["repaired"])]


def test_claims_can_name_the_papers_form_and_the_repaired_one_is_the_second_reading() -> None:
    reading = Reading(repaired="bdr", printed="bdr-paper", claims="printed", label="as in the paper")
    claim = a_claim(a={"where": {"algorithm": "bdr-paper"}}, expect={"above": 1.0})
    other = second_reading(claim, [reading])
    assert other is not None and other.a.where == {"algorithm": "bdr"}
    assert second_reading(claim, READINGS) is None
    assert words_of([reading]) == ("as in the paper", "repaired")


def test_every_claim_of_bdrs_paper_is_judged_on_one_form() -> None:
    study = load_study(find_study("bdr"))
    for claim in study.claims:
        if claim.group == "paper":
            judged = claim.a.where.get("algorithm")
            assert judged == "bdr-paper", claim.id
            assert claim.b is None or "bdr" not in str(claim.b.where.get("algorithm", "")), claim.id


@pytest.mark.parametrize("name", ["brf", "pacec", "bdr", "bbr-gain"])
def test_every_experiment_with_a_repaired_algorithm_also_runs_it_as_printed(name: str) -> None:
    study = load_study(find_study(name))
    assert study.readings
    # The readings of a paper differ in how phases end. Computed models have no phases, so they have only one
    # reading.
    for experiment in (experiment for experiment in study.experiments if experiment.computed is None):
        text = (study.folder / experiment.scenario).read_text()
        for claim in _claims(study, experiment):
            if second_reading(claim, study.readings) is not None:
                named = str(claim).replace("'", '"')
                pairs = [pair for pair in study.readings if f'"{pair.forms[0]}"' in named]
                assert pairs
                assert all(f'"{pair.forms[1]}"' in text for pair in pairs), (experiment.id, claim.id)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            'ours = "1000p"',
            'ours = "77p"',
            "ours: found '77p', expected the value of links.4.queue in",
        ),
        (
            'key = "links.4.queue"',
            'key = "links.99.queue"',
            "links.99: found '99', expected an entry",
        ),
        ('others = ["100p", "100000p"]', 'others = ["100q"]', "found '100q'"),
    ],
)
def test_a_wrong_free_input_is_refused_before_anything_runs(
    right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    shutil.copytree(find_study("brf"), folder)
    text = (folder / "study.toml").read_text()
    at = text.index('id = "buffer", key = "links.4.queue"')
    (folder / "study.toml").write_text(text[:at] + text[at:].replace(right, wrong, 1))
    study = load_study(folder)
    with pytest.raises(NarrowsError) as error:
        runner.run_study(study, tmp_path / "out", quick=True, only=["E2"])
    assert f"{folder}: experiment E2: free input buffer: " in str(error.value)
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()
