"""Studies on real stacks, without a kernel: planned runs, parts left out, verdicts, and the page."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrows.errors import NarrowsError, ScenarioError
from narrows.report import build, write
from narrows.report.real import side_by_side
from narrows.scenario.load import expand
from narrows.studies import Verdict, find_study, judge, load_study
from narrows.studies.load import known_studies, read_scenario, scenario_text
from narrows.studies.model import Expect, OnKernel, Side
from narrows.studies.real import OVERHEAD_S, minutes, omit, plan, run_on_both
from narrows.studies.runner import Outcome
from sketch import Sketch

STUDY = load_study(find_study("brf"))
DISTURBED = "the processors were 100 % busy, allowed are 90 %"


class Fake(Sketch):
    """A stand-in for real stacks. It reports whether runs are sound, and can refuse BRF."""

    name = "kernel"
    most_jobs: int | None = 1

    def __init__(self, *, brf: bool = True, disturbed: str = "", breaks: str = "") -> None:
        self.brf, self.disturbed, self.breaks = brf, disturbed, breaks
        self.runs: list[Any] = []

    def facts(self) -> dict[str, Any]:
        return {"kernel": "6.0-fake"}

    def check(self, plan: Any) -> None:
        if plan["rate_controllers"] and not self.brf:
            raise ScenarioError("found 'brf', expected none: no agent", "rate_controllers.0.kind")

    def run(self, plan: Any) -> dict[str, Any]:
        self.runs.append(plan)
        cc = plan["flows"][0]["transport"]["cc"]
        if cc == self.breaks:
            raise NarrowsError("the agent ended")
        output = dict(super().run(plan))
        reasons = [DISTURBED] if cc == self.disturbed else []
        output["soundness"] = {"sound": not reasons, "reasons": reasons}
        # The goodput is 10 % lower than in the simulation.
        output["flows"] = {**output["flows"], "goodput_bps": 0.9 * output["flows"]["goodput_bps"]}
        return output


def run(folder: Path, real: Fake, *only: str, reuse: bool = False) -> tuple[Outcome, list[str]]:
    said: list[str] = []
    outcome = run_on_both(
        STUDY, folder, real, quick=True, only=only, simulator=Sketch(), reuse=reuse, say=said.append
    )
    return outcome, said


@pytest.mark.parametrize(("quick", "most_s"), [(True, 180), (False, 2700)])
def test_the_whole_study_fits_into_its_time(quick: bool, most_s: float) -> None:
    pairs = [plan(STUDY, experiment, quick, Fake()) for experiment in STUDY.experiments]
    assert {pair.experiment.id for pair in pairs if pair.real} == {"E1", "E2", "E3", "E4", "E5", "E6"}
    assert 0.5 * most_s < sum(pair.seconds for pair in pairs) < most_s
    for pair in pairs:
        if pair.real is None:
            assert pair.left_out and pair.seconds == 0
            continue
        here, there = expand(pair.simulated, seeds=1), expand(pair.real, seeds=1)
        assert [item.factors for item in here] == [item.factors for item in there]
        assert pair.simulated.duration == pair.real.duration
        assert pair.simulated.raw()["receive_buffer"] == "auto"
        runs = len(expand(pair.real))
        assert pair.seconds == pytest.approx(runs * (pair.real.duration / 1e9 + OVERHEAD_S))
        links = [link for item in there for link in item.point.raw()["links"]]
        assert links and not [link for link in links if "jitter" in link]


def test_both_sides_have_a_verdict_of_their_own(tmp_path: Path) -> None:
    real = Fake()
    outcome, said = run(tmp_path, real, "E6", "E7")
    assert outcome.real is not None and set(outcome.real.runs) == {"E6"} == set(outcome.runs)
    assert len(real.runs) == len(outcome.real.runs["E6"]) == 3
    assert len(outcome.runs["E6"]) == 9
    found = {finding.claim.id: finding for finding in outcome.real.findings}
    # C24 is a claim about every run, so one run can decide it. C22 needs an interval, and so several seeds.
    assert found["C24"].verdict is Verdict.REPRODUCED
    assert found["C22"].verdict is Verdict.UNJUDGED and "one run" in found["C22"].why
    large = outcome.real.comparisons["E6"].large
    assert {pair.figure for pair in large} == {"goodput_bps"}
    assert all(-0.2 < pair.difference < -0.05 for pair in large)
    assert said[0] == (
        "on the kernel: 3 runs, 15 s of real time, 1 at a time, about 22 s with the set-up of each run; "
        "for comparison: 9 runs, 45 s of simulated time"
    )
    assert any("E6: 3 of 3 runs on the kernel" in line for line in said)
    assert any(line.startswith("E7: left out: Radio links") for line in said)
    assert (tmp_path / "sim" / "E6" / "runs.parquet").exists()
    assert (tmp_path / "kernel" / "E6" / "runs.parquet").exists()


def test_order_claims_are_decided_by_one_command_on_real_stacks(tmp_path: Path) -> None:
    """An experiment has several seeds on real stacks only if one of its claims needs an interval."""
    real = Fake()
    said: list[str] = []
    outcome = run_on_both(STUDY, tmp_path, real, only=["E6"], simulator=Sketch(), say=said.append)
    assert outcome.real is not None
    assert len(real.runs) == 3 * len({str(run.factors) for run in outcome.real.runs["E6"]})
    found = {finding.claim.id: finding for finding in outcome.real.findings}
    assert "one run" not in found["C22"].why and found["C22"].cases[0].interval.n == 3
    every = STUDY.model_copy(update={"claims": [c for c in STUDY.claims if c.id == "C24"]})
    assert every.claims[0].expect is not None and not every.claims[0].expect.needs_interval
    pair = plan(every, STUDY.experiment("E6"), False, Fake())
    assert pair.real is not None and pair.real.seeds == 1


def test_the_number_of_seeds_can_be_chosen_on_real_stacks() -> None:
    for quick, simulated in ((True, 5), (False, 10)):
        pair = plan(STUDY, STUDY.experiment("E6"), quick, Fake(), seeds=5)
        assert pair.real is not None
        assert (pair.real.seeds, pair.simulated.seeds) == (5, simulated)


def test_an_experiment_sets_keys_only_for_real_stacks() -> None:
    draft = load_study(find_study("bbr-draft"))
    experiment = draft.experiments[0]
    simulated, real = (
        read_scenario(draft.folder, experiment, real=keys)["links"][0] for keys in (None, draft.kernel_set)
    )
    assert (simulated["between"], real["between"]) == (["S", "R"], ["R", "D"])
    assert "# links.tight.between" in scenario_text(draft.folder, experiment, real=draft.kernel_set)
    assert "# links.tight.between" not in scenario_text(draft.folder, experiment)
    kernel = experiment.kernel.model_copy(update={"set": {"links.nope.rate": "1mbit"}})
    wrong = experiment.model_copy(update={"kernel": kernel})
    with pytest.raises(
        ScenarioError, match=r"study\.toml: experiments\.D1\.kernel\.set: links\.nope\.rate: found"
    ):
        plan(draft, wrong, True, Fake())


def test_keys_of_all_experiments_apply_on_real_stacks_before_the_keys_of_an_experiment() -> None:
    draft = load_study(find_study("bbr-draft"))
    shared = {**draft.kernel_set, "links.tight.queue": "3bdp", "kernel.delay": "netem"}
    for name, delay in (("D1", "netem"), ("D5", "relay")):  # D5 has its own kernel.delay
        data = read_scenario(draft.folder, draft.experiment(name), real=shared)
        assert (data["links"][0]["queue"], data["kernel"]["delay"]) == ("3bdp", delay)
    never = draft.experiment("D12")
    assert read_scenario(draft.folder, never, real=shared) == read_scenario(draft.folder, never)
    for key, value, says in (
        ("links.nope.rate", "1mbit", r"study\.toml: kernel_set: links\.nope\.rate: found"),
        ("links.tight.rate", 7, r"path\.toml: links\.0\.rate: found 7"),
    ):
        wrong = draft.model_copy(update={"kernel_set": {key: value}})
        with pytest.raises(ScenarioError, match=says):
            plan(wrong, draft.experiments[0], True, Fake())


@pytest.mark.parametrize("name", known_studies())
def test_every_experiment_of_the_library_has_a_form_for_real_stacks(name: str) -> None:
    """A study once stopped before its first run, because an experiment omitted a key by name."""
    study = load_study(find_study(name))
    for experiment in study.experiments:
        if not experiment.scenario:
            continue  # computed, not simulated
        for quick in (False, True):
            pair = plan(study, experiment, quick, Fake())
            assert pair.real is not None or pair.left_out, experiment.id


def test_cases_that_the_kernel_refuses_are_left_out_with_the_reason(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(brf=False), "E6")
    assert outcome.real is not None
    assert {run.factors["algorithm"] for run in outcome.real.runs["E6"]} == {"cubic", "bbr"}
    assert {run.factors["algorithm"] for run in outcome.runs["E6"]} == {"cubic", "bbr", "brf"}
    assert (
        "Without brf: rate_controllers.0.kind: found 'brf', expected none: no agent."
        in (outcome.real.left_out["E6"])
    )
    found = {finding.claim.id: finding for finding in outcome.real.findings}
    assert found["C24"].verdict is Verdict.UNJUDGED


def test_a_run_that_was_not_sound_is_shown_and_not_judged(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(disturbed="brf"), "E6")
    assert outcome.real is not None
    found = {finding.claim.id: finding for finding in outcome.real.findings}
    assert found["C24"].verdict is Verdict.UNJUDGED
    assert DISTURBED in found["C24"].why and found["C24"].cases[0].doubted
    assert found["C24"].cases[0].interval.mean < 1.0
    assert "do not trust: " + DISTURBED in build(outcome)
    # The claim C22 has another reason: one run cannot decide it.
    claim = next(claim for claim in STUDY.claims if claim.id == "C22")
    assert "one run" in judge(claim, outcome.real.runs).why


def test_a_failing_experiment_does_not_stop_others(tmp_path: Path) -> None:
    outcome, said = run(tmp_path, Fake(breaks="bbr"), "E4", "E6")
    assert outcome.real is not None
    # The run of CUBIC ended before the failure, so it is kept.
    for identity in ("E4", "E6"):
        assert [run.factors["algorithm"] for run in outcome.real.runs[identity]] == ["cubic"]
        assert "The missing runs failed: the agent ended" in outcome.real.left_out[identity]
    assert "E4: the agent ended" in said


def test_finished_experiments_are_not_run_again(tmp_path: Path) -> None:
    run(tmp_path, Fake(), "E6")
    again = Fake()
    outcome, said = run(tmp_path, again, "E4", "E6", reuse=True)
    assert said[0].startswith("on the kernel: 3 runs, 15 s of real time")
    assert outcome.real is not None and set(outcome.real.runs) == {"E4", "E6"}
    assert len(again.runs) == 3
    other = Fake()
    run_on_both(
        STUDY, tmp_path, other, only=["E6"], simulator=Sketch(), reuse=True
    )  # without `quick`, the plan differs
    assert len(other.runs) == 18


def test_without_any_run_nothing_is_written_and_the_reason_is_given(tmp_path: Path) -> None:
    """Nothing may be written, because a report without runs could replace an earlier report."""
    with pytest.raises(NarrowsError, match=r"--on kernel: E7 is not run on real stacks: \S+") as refused:
        run(tmp_path / "results", Fake(), "E7")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("key", ["links.9.jitter", "links.0.loss", "nothing", "links.x.rate", "name.x"])
def test_a_missing_key_cannot_be_omitted(key: str) -> None:
    data = {"name": "x", "links": [{"rate": "1mbit", "jitter": "1ms"}]}
    with pytest.raises(NarrowsError, match=key):
        omit(data, key)
    omit(data, "links.0.jitter")
    assert data == {"name": "x", "links": [{"rate": "1mbit"}]}


def test_times_in_words() -> None:
    assert [minutes(seconds) for seconds in (-3, 89, 91, 800)] == ["0 s", "89 s", "2 min", "13 min"]


# --- the page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    outcome, _ = run(tmp_path_factory.mktemp("both"), Fake(disturbed="bbr"))
    return re.sub(r"<script.*?</script>", "", build(outcome), flags=re.DOTALL)


def test_paper_simulation_and_kernel_in_one_table(page: str) -> None:
    row = page[page.index('id="claim-C13"') :]
    row = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row[: row.index("</tr>") + 5]))
    assert "close to 1" in row and row.count("reproduced") == 2
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", page[page.index('class="claims both"') :])
    assert heads[:5] == ["Claim", "Paper", "Simulation", "Kernel", "Verdict"]


def test_a_study_in_a_guest_says_so(tmp_path: Path) -> None:
    real = Fake(disturbed="bbr")
    real.name = "vm"
    outcome, said = run(tmp_path, real)
    write(outcome, tmp_path, files=False)
    page = re.sub(r"<(script|style).*?</\1>", "", (tmp_path / "report.html").read_text(), flags=re.DOTALL)
    heads = re.findall(r"<(?:th|h2|h4|span|figcaption)[^>]*>([^<]*)", page)
    assert {"Guest", "Simulation against guest"} <= set(heads)
    assert not [head for head in heads if "kernel" in head.lower()]
    assert 'data-label="Kernel"' not in page and 'id="fig-queueing-vm"' in page
    assert "E7 was not run in the guest: Radio links" in page
    assert any("E6: 3 of 3 runs in the guest" in line for line in said)
    for name in ("claims.csv", "measures.csv"):
        with (tmp_path / name).open(newline="") as file:
            assert {row["on"] for row in csv.DictReader(file)} == {"sim", "vm"}


def test_the_page_marks_differences(page: str) -> None:
    section = page[page.index('<section id="E6"') :]
    section = section[: section.index("</section>")]
    rows = [
        [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row)]
        for row in re.findall(r"<tr>.*?</tr>", section)
    ]
    by_case = {row[0]: row for row in rows if row}
    assert list(by_case) == ["CUBIC", "BBR", "BRF"]
    case, buffer, flow, *figures, verdict = by_case["BRF"]
    assert (case, buffer, flow, verdict) == ("BRF", "buffer 1,000 packets", "s1", "sound")
    simulated, real = float(figures[0]), float(figures[1])
    assert real == pytest.approx(0.9 * simulated, rel=0.02)
    assert figures[2].endswith("%") and figures[5] == "0.0\N{NO-BREAK SPACE}%"
    assert by_case["BBR"][-1] == f"do not trust: {DISTURBED}"
    assert section.count('class="num beyond"') == 3  # the goodputs, but not the RTTs
    assert 'id="fig-queueing"' in section and 'id="fig-queueing-kernel"' in section


@pytest.mark.parametrize(("real", "words"), [(93.0, "(seeds)"), (70.0, "")])
def test_a_difference_as_small_as_between_seeds_is_marked(tmp_path: Path, real: float, words: str) -> None:
    """If simulated runs have 80, 100 and 120 Mbit/s, a real run is expected at 100 +- 99.4 Mbit/s.

    If they have 99, 100 and 101 Mbit/s, a real run is expected at 100 +- 5 Mbit/s.
    """
    outcome, _ = run(tmp_path, Fake(), "E6")
    assert outcome.real is not None
    pair = next(p for p in outcome.real.comparisons["E6"].pairs if p.figure == "goodput_bps")
    spread = (80.0, 100.0, 120.0) if words else (99.0, 100.0, 101.0)
    for item, value in zip(outcome.runs["E6"].where({"algorithm": "cubic"}), spread, strict=True):
        flows = dict(item.tables["flows"])
        flows["goodput_bps"] = np.full(len(flows["goodput_bps"]), value * 1e6)
        item.tables["flows"] = flows  # type: ignore[index]
    outcome.real.comparisons["E6"].pairs[:] = [replace(pair, a=100e6, b=real * 1e6)]
    table = side_by_side(STUDY.experiment("E6"), outcome)
    assert table is not None
    assert [cell.half for cell in table.rows[0] if cell.css == "beyond"] == [words]


def test_the_page_shows_left_out_parts_and_the_agreement(page: str) -> None:
    assert "E7 was not run on the kernel: Radio links" in page
    assert "The algorithm as printed runs in the simulator only" in page
    table = page[page.index('<section id="real"') :]
    table = table[: table.index("</section>")]
    assert "0 of 3" in table and "3 of 3" in table


def test_runs_on_real_stacks_stand_beside_the_model_under_their_own_name(tmp_path: Path) -> None:
    study = load_study(find_study("bbr-gain"))
    short = OnKernel(duration="2s", keep={"algorithm": ["bbr"]}, simulated_seeds=2)
    m1 = study.experiment("M1").model_copy(update={"kernel": short})
    of_both = next(c for c in study.claims if c.experiment == "M1" and c.a.where.get("by") == "model")
    side = Side(where={"algorithm": "bbr", "by": "simulation"})
    claim = of_both.model_copy(
        update={"a": side, "b": None, "compare": "value", "measure": "goodput", "args": {}}
    )
    claim = claim.model_copy(update={"expect": Expect(at_least=0.0), "cannot": ""})
    study = study.model_copy(update={"experiments": [m1], "claims": [claim]})
    outcome = run_on_both(study, tmp_path, Fake(), simulator=Sketch())
    assert outcome.real is not None
    assert outcome.real.runs["M1"].values("by") == ["kernel", "model"]
    assert outcome.runs["M1"].values("by") == ["simulation", "model"]
    found = outcome.real.findings[0]
    assert found.verdict is Verdict.REPRODUCED and found.claim.a.where["by"] == "kernel"
