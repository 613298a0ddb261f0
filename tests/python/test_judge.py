"""The judge of claims: verdicts from runs that are made by hand."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from narrows import metrics
from narrows.studies import Claim, Run, Runs, Verdict, find_study, judge, load_study
from narrows.studies.judge import Bound, judge_bound
from narrows.studies.model import Expect

# --- runs made by hand


def a_run(controller: str, seed: int, goodput: float, **factors: float) -> Run:
    flows = {
        "flow": np.array([0, 1]),
        "name": ["long", "short"],
        "cc": [controller, "cubic"],
        "source": ["a", "b"],
        "goodput_bps": np.array([goodput * 1e6, 40e6]),
    }
    return Run({"algorithm": controller, **factors}, seed, {"flows": flows})


def a_claim(**more: Any) -> Claim:
    table: dict[str, Any] = {
        "id": "X",
        "source": "s",
        "says": "w",
        "experiment": "E",
        "measure": "goodput",
        "args": {"flows": "long"},
    }
    return Claim(**{**table, **more})


RUNS = {
    "E": Runs(
        [a_run("brf", seed, 90 + seed, loss=loss) for loss in (0.01, 0.1) for seed in (1, 2, 3)]
        + [
            a_run("bbr", seed, (80 if loss == 0.1 else 95) + 2 * seed, loss=loss)
            for loss in (0.01, 0.1)
            for seed in (1, 2, 3)
        ]
    )
}


def sides(**where: Any) -> dict[str, Any]:
    return {"a": {"where": {"algorithm": "brf", **where}}, "b": {"where": {"algorithm": "bbr", **where}}}


def test_order_is_decided_by_the_paired_difference() -> None:
    above = a_claim(**sides(loss=0.1), compare="difference", expect={"above": 0.0})
    finding = judge(above, RUNS)
    assert finding.verdict is Verdict.REPRODUCED
    # For the three seeds, the pairs are 91 and 82, 92 and 84, and 93 and 86.
    assert finding.cases[0].interval.mean == pytest.approx(8.0)
    assert finding.cases[0].interval.low == pytest.approx(8.0 - 4.30265 / math.sqrt(3), abs=1e-4)
    below = above.model_copy(update={"expect": above.expect.model_copy(update={"above": 10.5})})
    assert judge(below, RUNS).verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize("border", [5.6, 8.0, 10.4])  # the interval is 8.0 +- 2.48
def test_an_interval_that_contains_the_limit_decides_nothing(border: float) -> None:
    for expect in ({"above": border}, {"below": border}, {"about": border + 3.0, "within": 3.0}):
        finding = judge(a_claim(**sides(loss=0.1), compare="difference", expect=expect), RUNS)
        assert finding.verdict is Verdict.UNJUDGED
        assert f"the 95 % interval straddles {border:g}" in finding.why


def test_an_interval_of_no_width_on_the_border_is_not_beyond_it() -> None:
    # The goodput of `short` depends on the seed. The claim is about `long`, whose goodput is always the same.
    runs = [a_run("brf", seed, 90, loss=0.1) for seed in (1, 2)]
    for run in runs:
        run.tables["flows"]["goodput_bps"][1] += run.seed
    same = {"E": Runs(runs)}
    for expect in ({"above": 90.0}, {"below": 90.0}):
        claim = a_claim(a={"where": {"algorithm": "brf"}}, expect=expect)
        assert judge(claim, same).verdict is Verdict.NOT_REPRODUCED
    at_the_edge = a_claim(a={"where": {"algorithm": "brf"}}, expect={"about": 88.0, "within": 2.0})
    assert judge(at_the_edge, same).verdict is Verdict.REPRODUCED


def test_sides_that_differ_by_rounding_do_not_differ() -> None:
    """Rounding can cause a difference whose interval excludes zero, e.g. between 1 - 1e-11 and 1 - 2e-11."""
    for compare, even in (("difference", 0.0), ("gain", 0.0), ("ratio", 1.0)):
        for part, verdict in ((1e-9, Verdict.NOT_REPRODUCED), (1e-4, Verdict.REPRODUCED)):
            runs = [a_run("brf", s, 90 + s, loss=0.1) for s in (1, 2)]
            runs += [a_run("bbr", s, (90 + s) * (1 - part), loss=0.1) for s in (1, 2)]
            claim = a_claim(**sides(loss=0.1), compare=compare, expect={"above": even})
            assert judge(claim, {"E": Runs(runs)}).verdict is verdict, (compare, part)


@pytest.mark.parametrize(
    ("goodputs", "every", "some"),
    [
        # There are two cases, each with the goodputs of two seeds. The claim is that the goodput is above 50.
        ([(90, 91), (49, 51)], Verdict.UNJUDGED, Verdict.REPRODUCED),
        ([(10, 11), (49, 51)], Verdict.NOT_REPRODUCED, Verdict.UNJUDGED),
        ([(10, 11), (20, 21)], Verdict.NOT_REPRODUCED, Verdict.NOT_REPRODUCED),
        ([(90, 91), (80, 81)], Verdict.REPRODUCED, Verdict.REPRODUCED),
    ],
)
def test_one_verdict_of_many_cases(
    goodputs: list[tuple[float, float]], every: Verdict, some: Verdict
) -> None:
    runs = [
        a_run("brf", seed, goodput, loss=loss)
        for loss, pair in zip((0.01, 0.1), goodputs, strict=True)
        for seed, goodput in enumerate(pair)
    ]
    claim = a_claim(a={"where": {"algorithm": "brf"}}, expect={"above": 50.0})
    assert judge(claim, {"E": Runs(runs)}).verdict is every
    assert judge(claim.model_copy(update={"across": "any"}), {"E": Runs(runs)}).verdict is some


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({"at_least": 1.0}, "smallest of 2 runs: 20, 1 needed"),
        ({"at_most": 99.0}, "largest of 2 runs: 92, 99 allowed"),
        ({"at_least": 40.0}, "loss 0.1: smallest of 2 runs: 20, 40 needed"),
    ],
)
def test_the_case_closest_to_the_limit_represents_all(expect: dict[str, float], said: str) -> None:
    goodputs = {0.01: (30, 35), 0.05: (91, 92), 0.1: (20, 90)}
    runs = [
        a_run("brf", seed, goodput, loss=loss)
        for loss, pair in goodputs.items()
        for seed, goodput in enumerate(pair)
    ]
    claim = a_claim(a={"where": {"algorithm": "brf"}}, expect=expect)
    assert judge(claim, {"E": Runs(runs)}).why.endswith(said)


def test_identical_seeds_are_one_run() -> None:
    """Identical runs would give an interval without width, which must not decide a claim."""
    claim = a_claim(**sides(loss=0.1), compare="difference", expect={"above": 0.0})
    same = [
        a_run(name, seed, goodput, loss=0.1)
        for name, goodput in (("brf", 90), ("bbr", 89.9))
        for seed in (1, 2, 3)
    ]
    finding = judge(claim, {"E": Runs(same)})
    assert finding.verdict is Verdict.UNJUDGED
    assert finding.cases[0].interval.n == 1
    assert finding.why.startswith(
        "one run has no confidence interval; 2 of 3 seeds repeat another seed's run"
    )
    # Only the runs of side B differ. Those of side A are identical.
    half = [
        run if run.factors["algorithm"] == "brf" else a_run("bbr", run.seed, 80 + run.seed, loss=0.1)
        for run in same
    ]
    assert judge(claim, {"E": Runs(half)}).verdict is Verdict.UNJUDGED
    # One run can decide a limit that every run must meet.
    limit = a_claim(a={"where": {"algorithm": "brf"}}, expect={"at_least": 50.0})
    assert judge(limit, {"E": Runs(same)}).verdict is Verdict.REPRODUCED
    # The seeds 1 and 2 give the same run, and seed 3 gives another. So there are two replicates.
    most = [a_run("brf", seed, 90 + (seed == 3), loss=0.1) for seed in (1, 2, 3)]
    above = a_claim(a={"where": {"algorithm": "brf"}}, expect={"above": 50.0})
    finding = judge(above, {"E": Runs(most)})
    assert finding.verdict is Verdict.REPRODUCED and finding.cases[0].interval.n == 2


def test_a_run_is_digested_once_for_all_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[Run] = []
    plain = Run.digest.func
    counting = functools.cached_property(lambda run: digested.append(run) or plain(run))
    counting.__set_name__(Run, "digest")
    monkeypatch.setattr(Run, "digest", counting)
    runs = {"E": Runs(a_run("brf", seed, 90 + seed) for seed in (1, 2, 3))}
    claim = a_claim(a={"where": {"algorithm": "brf"}}, expect={"above": 50.0})
    assert judge(claim, runs) == judge(claim, runs)
    assert len(digested) == 3


def test_identical_runs_are_named() -> None:
    def finding(goodput: Callable[[int, float, float], float]) -> str:
        runs = [
            a_run("brf", seed, goodput(seed, loss, buffer), loss=loss, buffer=buffer)
            for loss in (0.01, 0.1)
            for buffer in (100.0, 1000.0, 1e5)
            for seed in (1, 2)
        ]
        claim = a_claim(a={"where": {"algorithm": "brf"}}, expect={"at_least": 1.0})
        return judge(claim, {"E": Runs(runs)}).why

    assert "the runs with buffer 100 and 1,000 and 100,000 are identical" in finding(
        lambda seed, loss, buffer: 90 + seed + loss
    )
    small = finding(lambda seed, loss, buffer: 90 + seed + loss + (buffer == 100))
    assert "the runs with buffer 1,000 and 100,000 are identical" in small and small.startswith(
        "loss 0.01, buffer 1,000: "
    )
    some = finding(lambda seed, loss, buffer: 90 + seed + (buffer if loss == 0.1 else 0))
    assert some.endswith("are identical in 1 of 2 cases")
    # If the runs of one seed differ, even in the last digit, the runs are not identical.
    assert "identical" not in finding(lambda seed, loss, buffer: 90 + loss + (seed == 2) * buffer * 1e-9)


def test_a_free_factor_makes_a_case_each() -> None:
    claim = a_claim(**sides(), compare="difference", expect={"above": 0.0})
    every = judge(claim, RUNS)
    assert [dict(case.factors) for case in every.cases] == [{"loss": 0.01}, {"loss": 0.1}]
    assert [case.verdict for case in every.cases] == [Verdict.NOT_REPRODUCED, Verdict.REPRODUCED]
    assert every.verdict is Verdict.NOT_REPRODUCED and every.why.startswith("loss 0.01: no part")
    assert every.grade == "holds in 1 of 2 cases"
    assert judge(claim.model_copy(update={"across": "any"}), RUNS).verdict is Verdict.REPRODUCED


def test_a_list_of_values_leaves_the_factor_free() -> None:
    claim = a_claim(a={"where": {"algorithm": "brf", "loss": [0.01, 0.1]}}, expect={"at_least": 91.0})
    assert len(judge(claim, RUNS).cases) == 2


@pytest.mark.parametrize(
    ("expect", "verdict"),
    [
        ({"at_least": 91.0}, Verdict.REPRODUCED),
        ({"at_least": 91.5}, Verdict.NOT_REPRODUCED),  # the mean is 92, but one run is below 91.5
        ({"at_most": 93.0}, Verdict.REPRODUCED),
        ({"at_most": 92.5}, Verdict.NOT_REPRODUCED),
        # The interval is 92 +- 2.48.
        ({"about": 90.0, "within": 4.5}, Verdict.REPRODUCED),
        ({"about": 90.0, "within": 4.4}, Verdict.UNJUDGED),
        ({"about": 80.0, "within": 9.5}, Verdict.NOT_REPRODUCED),
        ({"about": 99.0, "within": 4.5}, Verdict.NOT_REPRODUCED),
        ({"below": 95.0}, Verdict.REPRODUCED),
        ({"below": 93.0}, Verdict.UNJUDGED),
        ({"below": 89.0}, Verdict.NOT_REPRODUCED),
    ],
)
def test_bounds_and_values(expect: dict[str, float], verdict: Verdict) -> None:
    claim = a_claim(a={"where": {"algorithm": "brf", "loss": 0.1}}, expect=expect)
    assert judge(claim, RUNS).verdict is verdict


@pytest.mark.parametrize(
    ("expect", "verdict"),
    [
        # The interval is 92 +- 2.48.
        ({"above": 80.0, "against": 50.0}, Verdict.REPRODUCED),
        ({"above": 99.0, "against": 90.0}, Verdict.UNJUDGED),  # the interval contains 90
        ({"above": 99.0, "against": 93.0}, Verdict.UNJUDGED),
        ({"above": 99.0, "against": 95.0}, Verdict.NOT_REPRODUCED),
        ({"below": 99.0, "against": 120.0}, Verdict.REPRODUCED),
        ({"below": 50.0, "against": 99.0}, Verdict.UNJUDGED),
        ({"below": 50.0, "against": 80.0}, Verdict.NOT_REPRODUCED),
    ],
)
def test_an_effect_between_two_words_decides_nothing(expect: dict[str, float], verdict: Verdict) -> None:
    claim = a_claim(a={"where": {"algorithm": "brf", "loss": 0.1}}, expect=expect)
    assert judge(claim, RUNS).verdict is verdict


def test_the_limit_for_the_opposite_is_on_the_other_side() -> None:
    for expect in (
        {"above": 1.0, "against": 2.0},
        {"below": 2.0, "against": 1.0},
        {"about": 1.0, "within": 1.0, "against": 0.0},
    ):
        with pytest.raises(ValueError, match="against"):
            Expect(**expect)


def test_opposite_words_for_one_effect_never_share_a_limit() -> None:
    """In the study of BRF, claim C5 says "gently", and claim C7 says "rapidly".

    Only C7 has a limit, so C5 is never judged.
    """
    claims = {claim.id: claim for claim in load_study(find_study("brf")).claims}
    assert "no number" in claims["C5"].cannot
    rapidly = claims["C7"].expect
    assert rapidly is not None
    assert rapidly.against is not None
    assert rapidly.below is not None
    assert rapidly.below < rapidly.against


def test_gain_and_ratio() -> None:
    gain = a_claim(**sides(loss=0.1), compare="gain", expect={"about": 9.5, "within": 4.0})
    ratio = a_claim(**sides(loss=0.1), compare="ratio", expect={"about": 1.095, "within": 0.04})
    assert judge(gain, RUNS).verdict is judge(ratio, RUNS).verdict is Verdict.REPRODUCED
    assert judge(gain, RUNS).unit == "%"
    assert judge(gain, RUNS).cases[0].interval.mean == pytest.approx(9.5463, abs=1e-4)
    assert judge(ratio, RUNS).cases[0].interval.mean == pytest.approx(1.095463, abs=1e-6)


def test_a_claim_that_cannot_be_judged_gives_the_reason() -> None:
    lost = judge(a_claim(a={"where": {"loss": 0.1, "algorithm": "brf"}}, cannot="the table is lost"), RUNS)
    assert lost.verdict is Verdict.UNJUDGED and lost.why == "the table is lost" and lost.cases
    claim = a_claim(expect={"above": 0.0}, a={"where": {"algorithm": "brf", "loss": 0.1}})
    assert judge(claim, {}).verdict is Verdict.UNJUDGED
    nobody = claim.model_copy(update={"a": claim.a.model_copy(update={"where": {"algorithm": "xcp"}})})
    assert judge(nobody, RUNS).verdict is Verdict.UNJUDGED
    one = {"E": Runs([a_run("brf", 1, 90, loss=0.1)])}
    assert "one run" in judge(claim, one).why
    near = claim.model_copy(update={"expect": Expect(about=90.0, within=1.0)})
    assert "one run" in judge(near, one).why
    undefined = {"E": Runs([a_run("brf", 1, math.nan, loss=0.1), a_run("brf", 2, 90, loss=0.1)])}
    assert "undefined in 1 of 2" in judge(claim, undefined).why


# --- censored times


@pytest.mark.parametrize(
    ("expect", "bound", "verdict"),
    [
        # The interval is 9.97 to 10.03. Because times are censored, it bounds the true value only from above
        # (UPPER) or only from below (LOWER). A verdict is given if all possible values lead to it.
        ({"above": 20.0}, Bound.UPPER, Verdict.NOT_REPRODUCED),
        ({"above": 20.0, "against": 15.0}, Bound.UPPER, Verdict.NOT_REPRODUCED),
        ({"above": 20.0, "against": 5.0}, Bound.UPPER, Verdict.UNJUDGED),
        ({"above": 8.0, "against": 5.0}, Bound.LOWER, Verdict.REPRODUCED),
        ({"below": 5.0}, Bound.LOWER, Verdict.NOT_REPRODUCED),
        ({"below": 5.0, "against": 8.0}, Bound.LOWER, Verdict.NOT_REPRODUCED),
        ({"below": 5.0, "against": 20.0}, Bound.LOWER, Verdict.UNJUDGED),
        ({"below": 20.0, "against": 30.0}, Bound.UPPER, Verdict.REPRODUCED),
    ],
)
def test_a_bound_between_two_words_decides_nothing(
    expect: dict[str, float], bound: Bound, verdict: Verdict
) -> None:
    interval = metrics.mean_ci([9.99, 10.0, 10.01])
    found, _ = judge_bound(Expect(**expect), interval, 9.99, 10.01, bound)
    assert found is verdict
