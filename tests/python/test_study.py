"""Studies: checks of their files, and selection of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrows.errors import NarrowsError
from narrows.scenario.load import loads
from narrows.studies import Verdict, find_study, load_study, runner
from narrows.studies.computed import compute
from narrows.studies.load import read_scenario, scenario_text
from narrows.studies.printed import printed_rows
from narrows.studies.runner import Outcome
from narrows.studies.synthetic import as_csv, radio_trace
from sketch import Sketch

# --- measures and files


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2%", 0.02),
        ("1000p", 1000.0),
        ("0.5bdp", "0.5bdp"),
        ("100kB", "100kB"),
        ("20ms", 0.02),
        ("100mbit", 1e8),
        (0.5, 0.5),
        ("bbr", "bbr"),
        ('{"file": "a/ATT-LTE.down", "format": "mahimahi"}', "ATT-LTE"),
        ({"file": "x/y.csv"}, "y"),
    ],
)
def test_factors_in_base_units(text: Any, value: Any) -> None:
    assert (
        runner.factor(text) == pytest.approx(value)
        if isinstance(value, float)
        else runner.factor(text) == value
    )


def test_every_study_at_hand_is_sound() -> None:
    """Study files are valid, their measures and kinds of figures exist, and `--quick` keeps some runs."""
    from narrows.report.kinds import KINDS
    from narrows.scenario.load import expand
    from narrows.studies import MEASURES
    from narrows.studies.load import known_studies

    assert "brf" in known_studies()
    for name in known_studies():
        study = load_study(find_study(name))
        assert all(claim.measure in MEASURES for claim in study.claims)
        assert all(spec.kind in KINDS for spec in study.figures)
        for experiment in study.experiments:
            if experiment.printed:
                assert len(printed_rows(study.folder / experiment.printed)) > 1
                continue
            if experiment.computed is not None:
                assert len(compute(experiment.computed)) > 1
            if not experiment.scenario:
                continue
            full, _ = runner.prepare(study, experiment, quick=False)
            short, _ = runner.prepare(study, experiment, quick=True)
            assert 0 < len(expand(short)) <= len(expand(full))


def test_the_buffer_is_that_of_both_routers() -> None:
    """With BRF, the bottleneck is at R0.

    So if a sweep changes the buffer, it must also change the buffer of R0.
    """
    from narrows.scenario.load import expand
    from narrows.scenario.resolve import resolve

    study = load_study(find_study("brf"))
    for identity in ("E1", "E3", "E4", "E6"):
        scenario, _ = runner.prepare(study, study.experiment(identity), quick=True)
        for item in expand(scenario, seeds=1):
            plan = resolve(item.scenario)
            wanted = runner.factor(item.factors["links.*.queue"])
            for link in plan["links"]:
                limit = link["queue"]["limit"]["packets"]
                if link["name"] in ("R0->R1", "R1->C1"):
                    assert limit == wanted
                elif link["name"].startswith("S"):
                    assert limit is None
            assert [controller["limit"]["packets"] for controller in plan["rate_controllers"]] == (
                [wanted] if "brf" in str(item.factors["case"]) else []
            )


@pytest.mark.parametrize("quick", [False, True])
def test_variants_with_a_memory_of_a_minute_have_longer_runs(quick: bool) -> None:
    """In runs of less than 90 s, `bbr-a-recent` would behave as `bbr-a`."""
    study = load_study(find_study("bbr-gain"))
    seen = 0
    for experiment in (experiment for experiment in study.experiments if experiment.scenario):
        scenario, _ = runner.prepare(study, experiment, quick)
        if "-recent" in str(scenario.full()):
            seen += 1
            assert scenario.duration >= 90e9, experiment.id
    assert seen == 1


def test_the_two_paths_of_the_gain_study_have_the_rtts_that_they_say() -> None:
    from narrows.report.encode import number
    from narrows.scenario.load import expand
    from narrows.scenario.resolve import resolve

    study = load_study(find_study("bbr-gain"))

    def round_trips(plan: dict[str, Any]) -> list[float]:
        """For each sending host, the two-way propagation delay in ms."""
        delays = [link["delay"][0][1] / 1e6 for link in plan["links"]]
        return [sum(delays[i : i + 2]) + sum(delays[-2:]) for i in range(0, len(delays) - 2, 2)]

    for identity in ("G0", "M1", "G1", "G2", "G5", "G7"):
        scenario, _ = runner.prepare(study, study.experiment(identity), quick=True)
        assert all(round_trips(resolve(item.scenario)) == [10.0, 50.0] for item in expand(scenario, seeds=1))
    scenario, _ = runner.prepare(study, study.experiment("G3"), quick=True)
    for item in expand(scenario, seeds=1):
        plan = resolve(item.scenario)
        longer = 1e3 * float(runner.factor(item.factors["links.1.delay"]))
        assert round_trips(plan) == pytest.approx([10.0, longer])
        tight = next(link for link in plan["links"] if link["name"] == "tight")
        bdp = 100e6 / 8 * longer / 1e3
        buffer = number(runner.factor(item.factors["links.tight.queue"]))
        assert tight["queue"]["limit"]["bytes"] == pytest.approx(buffer * bdp)


def test_unknown_study_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(NarrowsError, match="nearest is 'brf'"):
        find_study("brff")
    (tmp_path / "study.toml").write_text("title = 3")
    with pytest.raises(NarrowsError, match="title"):
        load_study(tmp_path)
    (tmp_path / "study.toml").write_text("title = ")
    with pytest.raises(NarrowsError, match=r"study\.toml"):
        load_study(tmp_path)


def test_recorded_traces_in_the_data_folder_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load_study(find_study("brf"))
    experiment = study.experiment("E7")
    monkeypatch.setenv("NARROWS_DATA", str(tmp_path / "nowhere"))
    scenario, notes = runner.prepare(study, experiment, quick=True)
    assert len(scenario.raw()["sweep"]["vary"]["links.3.trace"]) == 1
    assert notes == [
        "E7: 5 of 5 recorded traces are not in the data folder; the synthetic trace is used instead. "
        "`narrows data` lists them."
    ]
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "Verizon-LTE-short.down").write_text("1\n2\n")
    monkeypatch.setenv("NARROWS_DATA", str(tmp_path))
    scenario, notes = runner.prepare(study, experiment, quick=True)
    assert len(scenario.raw()["sweep"]["vary"]["links.3.trace"]) == 2
    assert notes == ["E7: 4 of 5 recorded traces are not in the data folder. `narrows data` lists them."]
    monkeypatch.delenv("NARROWS_DATA")
    scenario, _ = runner.prepare(study, experiment, quick=True, folder=tmp_path)
    assert len(scenario.raw()["sweep"]["vary"]["links.3.trace"]) == 2


def test_the_synthetic_trace_is_the_generators() -> None:
    assert (find_study("brf") / "synthetic-5g.csv").read_text() == as_csv(120, seed=5)
    rates = np.array([rate for _, rate in radio_trace(600, seed=1)])
    assert rates.min() >= 1 and 80 < rates.mean() < 220
    steps = np.corrcoef(np.log(rates[1:]), np.log(rates[:-1]))[0, 1]
    assert steps > 0.9  # the rate has no jumps


# --- whole studies, with sketched results


def test_a_study_from_files_to_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NARROWS_DATA", str(tmp_path / "nowhere"))
    study = load_study(find_study("brf"))
    said: list[str] = []
    outcome = runner.run_study(
        study, tmp_path, quick=True, only=["E1", "E5"], backend=Sketch(), say=said.append
    )
    assert set(outcome.runs) == {"E1", "E5"}
    runs = outcome.runs["E1"]
    assert sorted({run.factors["algorithm"] for run in runs}) == ["bbr", "brf", "brf-literal", "cubic"]
    assert sorted({run.factors["loss"] for run in runs}) == [0.001, 0.02, 0.1]
    assert len(runs) == 4 * 3 * 2 * 2
    # A key whose value is the same in all runs is not a factor.
    assert all(set(run.factors) == {"algorithm", "loss", "buffer"} for run in runs)
    found = {finding.claim.id: finding for finding in outcome.findings}
    assert found["C6"].verdict is Verdict.REPRODUCED  # sketched CUBIC is slow under loss
    assert found["C18"].verdict is Verdict.REPRODUCED
    assert all(finding.claim.experiment in {"E1", "E5"} for finding in outcome.findings)
    again = runner.run_study(study, tmp_path, quick=True, only=["E1", "E5"], reuse=True)
    assert [f.verdict for f in again.findings] == [f.verdict for f in outcome.findings]
    with pytest.raises(NarrowsError, match="E99"):
        runner.run_study(study, tmp_path, only=["E99"], backend=Sketch())


def test_the_number_of_seeds_can_be_chosen(tmp_path: Path) -> None:
    study = load_study(find_study("brf"))
    said: list[str] = []

    def run(seeds: int | None, *, reuse: bool = False) -> Outcome:
        said.clear()
        return runner.run_study(
            study,
            tmp_path,
            quick=True,
            only=["E3"],
            seeds=seeds,
            jobs=2,
            reuse=reuse,
            backend=Sketch(),
            say=said.append,
        )

    outcome = run(3)
    runs = outcome.runs["E3"]
    varied = [run for group in outcome.varied["E3"].values() for run in group]
    assert {run.seed for run in runs} == {1, 2, 3} and {run.seed for run in varied} == {1, 2}
    total = len(runs) + len(varied)
    assert said[0] == f"{total} runs, {60 * total:,} s of simulated time, 2 at a time"
    assert any(line.startswith("E3: ") and line.endswith(" left") for line in said)
    # Tables are reused only if they have the same seeds.
    assert len(run(3, reuse=True).runs["E3"]) == len(runs) and "E3: read" in said[0]
    assert {found.seed for found in run(4, reuse=True).runs["E3"]} == {1, 2, 3, 4}
    assert {found.seed for found in run(None, reuse=True).runs["E3"]} == {1, 2, 3, 4}


def test_an_experiment_may_set_keys_of_another_ones_scenario(tmp_path: Path) -> None:
    study = load_study(find_study("bbr-gain"))
    g0, g1 = (runner.prepare(study, study.experiment(name), quick=False)[0] for name in ("G0", "G1"))
    changed = {key for key, value in g0.raw().items() if g1.raw()[key] != value}
    assert changed == {"name", "duration", "probes", "sweep"}
    assert g0.duration == 24e9 and g0.raw()["probes"]["interval"] == "5ms"
    assert g0.raw()["sweep"]["vary"] == {"flows.*.cc": ["bbr"]}
    text = scenario_text(study.folder, study.experiment("G0"))
    assert '# Keys that G0 sets:\n# name = "bbr-gain-g0"\n# duration = "24s"\n' in text
    wrong = study.experiment("G0").model_copy(update={"set": {"links.tigth.queue": "1bdp"}})
    with pytest.raises(
        NarrowsError, match=r"experiments\.G0\.set: links\.tigth\.queue: found 'tigth', expected"
    ):
        read_scenario(study.folder, wrong)


def test_the_work_ahead_counts_each_run_with_its_own_duration() -> None:
    scenario = loads(
        """
        duration = "10s"
        [[links]]
        between = ["A", "B"]
        rate = "10mbit"
        delay = "1ms"
        [[flows]]
        from = "A"
        to = "B"
        [sweep]
        seeds = 3
        vary = { duration = ["10s", "60s"], "flows.0.cc" = ["cubic", "reno"] }
        """
    )
    assert runner.amount([scenario], "simulated") == "12 runs, 420 s of simulated time"


def test_an_unknown_experiment_gives_a_one_line_error_with_the_known_ones(narrows, tmp_path):
    code, _, said = narrows("study", "bbr-gain", "--only", "G9", "--out", tmp_path / "out")
    assert code == 2
    assert said.startswith("--only: found 'G9', expected one of G0, M1, M2, G1, G2, G3, G4, G5, G6, G7")
    assert said.count("\n") == 1 and not (tmp_path / "out").exists()
