"""Verdicts on claims, computed from the runs."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from narrows import metrics
from narrows.errors import NarrowsError
from narrows.results.factors import Factor, in_words, point_in_words, same
from narrows.results.measures import Measure, Measured, find_measure, measure_run
from narrows.results.runs import Run, Runs, fingerprint, replicates
from narrows.studies.identical import same_runs
from narrows.studies.model import Claim, Expect, Side

OTHERS = "*"
"""In the second side of a claim, this value means all values of the factor except the value of the first
side. The claim has one case for each of these values."""
_PM = "\N{PLUS-MINUS SIGN}"


class Verdict(enum.Enum):
    """The verdict on a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNJUDGED = "cannot be judged"


class Bound(enum.Enum):
    """For a time whose end was not observed: where the true value is, relative to the measured value."""

    LOWER = ">"
    UPPER = "<"
    NEITHER = "?"


@dataclass(frozen=True)
class Case:
    """One case of a claim: the measurement at one combination of values of the claim's free factors."""

    factors: tuple[tuple[str, Factor], ...]
    interval: metrics.Interval
    least: float
    most: float
    bound: Bound | None
    """If the end of a measured time was not observed, the measured value is a bound of this kind (otherwise
    None)."""
    verdict: Verdict
    why: str
    sides: tuple[metrics.Interval, ...] = ()
    """The means of the sides `a` and `b`, if the claim compares two sides."""
    fingerprint: str = ""
    """Digest of the results of all flows in the case's runs. Cases with equal fingerprints have identical
    runs."""
    doubted: bool = False
    """Whether some of the case's real-time runs were not sound. If so, the case's figures are shown, but the
    case is not judged."""


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict and the evidence for it."""

    claim: Claim
    verdict: Verdict
    why: str
    cases: tuple[Case, ...] = ()
    unit: str = ""

    @property
    def grade(self) -> str:
        """The number of cases in which the claim holds, in words (empty if the claim has only one case)."""
        if len(self.cases) < 2:
            return ""
        holds, is_open = (
            sum(case.verdict is verdict for case in self.cases)
            for verdict in (Verdict.REPRODUCED, Verdict.UNJUDGED)
        )
        text = f"holds in {holds} of {len(self.cases)} cases"
        return f"{text}, {is_open} open" if is_open else text

    @property
    def holds_in_part(self) -> bool:
        """Whether the claim does not hold in general, but holds in some of its cases."""
        return self.verdict is Verdict.NOT_REPRODUCED and any(
            case.verdict is Verdict.REPRODUCED for case in self.cases
        )

    @property
    def words(self) -> str:
        """The verdict in words: "reproduced" for a claim of a paper, "met" for an expectation of our own."""
        return self.words_of(self.verdict)

    def words_of(self, verdict: Verdict) -> str:
        """A verdict on one of the claim's cases, in words."""
        return _OWN[verdict] if self.claim.group == "ours" else verdict.value


ALIKE = 1e-6
"""Two sides are treated as equal if their relative difference is below this value. For example, a fairness of
1 - 1e-11 is not better than a fairness of 1 - 2e-11."""

_OWN = {Verdict.REPRODUCED: "met", Verdict.NOT_REPRODUCED: "not met", Verdict.UNJUDGED: "cannot be judged"}


def judge(claim: Claim, experiments: Mapping[str, Runs]) -> Finding:
    """The verdict on a claim, given the runs of each experiment."""
    unit = unit_of(claim.compare, find_measure(claim.measure))
    runs = experiments.get(claim.experiment)
    if not runs:
        return Finding(claim, Verdict.UNJUDGED, f"experiment {claim.experiment} was not run", unit=unit)
    cases = _cases(claim, runs)
    if not cases:
        return Finding(claim, Verdict.UNJUDGED, "no run has these parameters", unit=unit)
    if claim.cannot:
        return Finding(claim, Verdict.UNJUDGED, claim.cannot, tuple(cases), unit)
    verdict, why = overall(claim, cases)
    why = "; ".join([why, *same_runs([(dict(case.factors), case.fingerprint) for case in cases])])
    return Finding(claim, verdict, why, tuple(cases), unit)


def unit_of(compare: str, measure: Measure) -> str:
    """The unit of the number that decides a claim (see `Claim.compare`)."""
    return {"gain": "%", "ratio": ""}.get(compare, measure.unit)


def overall(claim: Claim, cases: list[Case]) -> tuple[Verdict, str]:
    """The verdict on a claim, and the reason of the case that decides it."""
    good = [case for case in cases if case.verdict is Verdict.REPRODUCED]
    bad = [case for case in cases if case.verdict is Verdict.NOT_REPRODUCED]
    unsettled = [case for case in cases if case.verdict is Verdict.UNJUDGED]
    decisive = good or unsettled or bad if claim.across == "any" else bad or unsettled or good
    first = min(decisive, key=lambda case: _ease(claim.expect, case))
    return first.verdict, first.why if len(
        cases
    ) == 1 else f"{point_in_words(dict(first.factors))}: {first.why}"


def _ease(expect: Expect | None, case: Case) -> float:
    """A number that orders cases by their margin to the limit. A larger margin gives a larger number.

    The report names the case with the smallest number.
    """
    if expect is not None and expect.at_least is not None and not math.isnan(case.least):
        return case.least
    if expect is not None and expect.at_most is not None and not math.isnan(case.most):
        return -case.most
    return 0.0


def _cases(claim: Claim, runs: Runs) -> list[Case]:
    if claim.order:
        return _pairs(claim, runs)
    starred = [name for name, value in claim.b.where.items() if value == OTHERS] if claim.b else []
    if not starred:
        return _cases_of(claim, runs)
    assert claim.b is not None
    name = starred[0]
    cases = []
    for value in runs.values(name):
        if not same(value, _single(claim, name)):
            other = claim.b.model_copy(update={"where": {**claim.b.where, name: value}})
            found = _cases_of(claim.model_copy(update={"b": other}), runs)
            cases += [replace(case, factors=((name, value), *case.factors)) for case in found]
    return cases


def _pairs(claim: Claim, runs: Runs) -> list[Case]:
    """The cases of a claim with `order`: one for each pair of values from different groups that have runs."""
    factor, cases = claim.order_of, []
    for earlier, later in itertools.combinations(claim.order, 2):
        for a, b in itertools.product(earlier, later):
            sides = {
                side: Side(where={**claim.a.where, factor: value}, args=claim.a.args)
                for side, value in (("a", a), ("b", b))
            }
            found = _cases_of(claim.model_copy(update={**sides, "order": []}), runs)
            words = " over ".join(map(in_words, (a, b)))
            cases += [replace(case, factors=((factor, words), *case.factors)) for case in found]
    return cases


def _single(claim: Claim, name: str) -> Factor:
    value = claim.a.where.get(name)
    if value is None or isinstance(value, list):
        raise NarrowsError(f'{claim.id}: `{name} = "{OTHERS}"` needs one {name} on the other side')
    return value


def _cases_of(claim: Claim, runs: Runs) -> list[Case]:
    sides = [claim.a] if claim.b is None else [claim.a, claim.b]
    named = {name for side in sides for name in side.where}
    # If a side has exactly one value of a factor, the factor is fixed. If each side has a list of values of
    # the factor, or no value, the factor stays free.
    fixed = {name for name in named if any(not isinstance(side.where.get(name, []), list) for side in sides)}
    groups = [runs.where(side.where).cases(without=fixed) for side in sides]
    cases = []
    for key, group in groups[0].items():
        if any(key not in other for other in groups[1:]):
            continue
        by_seed = [
            {run.seed: _value(claim, side, run) for run in found[key]}
            for side, found in zip(sides, groups, strict=True)
        ]
        shared = [seed for seed in (run.seed for run in group) if all(seed in values for values in by_seed)]
        seeds = replicates(shared, [found[key] for found in groups])
        case = _case(claim, key, [[values[seed] for seed in seeds] for values in by_seed])
        if len(seeds) < len(shared):
            count = f"{len(shared) - len(seeds)} of {len(shared)}"
            repeats = f"{count} seeds repeat another seed's run and do not count"
            case = replace(case, why=f"{case.why}; {repeats}")
        chosen = [run for found in groups for run in found[key] if run.seed in seeds]
        doubts = sorted({doubt for run in chosen for doubt in run.doubts})
        if doubts and case.verdict is not Verdict.UNJUDGED:
            case = replace(case, verdict=Verdict.UNJUDGED, why=f"do not trust: {'; '.join(doubts)}")
        cases.append(replace(case, fingerprint=fingerprint(chosen), doubted=bool(doubts)))
    return cases


def _value(claim: Claim, side: Side, run: Run) -> Measured:
    return measure_run(claim.measure, run, **{**claim.args, **side.args})


def _case(claim: Claim, key: tuple[tuple[str, Factor], ...], sides: list[list[Measured]]) -> Case:
    values = [
        _combine(claim.compare, [measured.value for measured in row]) for row in zip(*sides, strict=True)
    ]
    known = [value for value in values if not math.isnan(value)]
    bound = _bound([any(measured.censored for measured in side) for side in sides])
    level = claim.expect.confidence if claim.expect is not None else metrics.CONFIDENCE
    interval = metrics.mean_ci(values, level)
    means = (
        tuple(metrics.mean_ci([measured.value for measured in side], level) for side in sides)
        if len(sides) > 1
        else ()
    )
    least, most = (min(known), max(known)) if known else (math.nan, math.nan)
    if claim.expect is None:
        verdict, why = Verdict.UNJUDGED, claim.cannot
    elif len(known) < len(values) or not known:
        verdict, why = Verdict.UNJUDGED, f"undefined in {len(values) - len(known)} of {len(values)} runs"
    elif bound is not None:
        verdict, why = judge_bound(claim.expect, interval, least, most, bound)
    else:
        verdict, why = _judge_known(claim.expect, interval, least, most)
    return Case(key, interval, least, most, bound, verdict, why, means)


def _judge_known(
    expect: Expect, interval: metrics.Interval, least: float, most: float
) -> tuple[Verdict, str]:
    if expect.at_least is not None:
        holds = least >= expect.at_least
        return _verdict(holds), f"smallest of {interval.n} runs: {least:.4g}, {expect.at_least:g} needed"
    if expect.at_most is not None:
        holds = most <= expect.at_most
        return _verdict(holds), f"largest of {interval.n} runs: {most:.4g}, {expect.at_most:g} allowed"
    if interval.n < 2:
        return Verdict.UNJUDGED, "one run has no confidence interval"
    low, high, border = _wanted(expect)
    if low < interval.low and interval.high < high:
        return Verdict.REPRODUCED, f"the {expect.interval} lies {border}"
    if expect.against is not None:
        return _judge_opposite(expect, interval, border)
    if interval.high <= low or high <= interval.low:
        return Verdict.NOT_REPRODUCED, f"no part of the {expect.interval} lies {border}"
    crossed = " and ".join(f"{edge:g}" for edge in (low, high) if interval.low <= edge <= interval.high)
    return Verdict.UNJUDGED, f"the {expect.interval} straddles {crossed}; {border} needed"


def _judge_opposite(expect: Expect, interval: metrics.Interval, border: str) -> tuple[Verdict, str]:
    """The verdict on a claim with a limit `against`, if the interval is not beyond the first limit."""
    assert expect.against is not None
    is_above = expect.above is not None
    side = "below" if is_above else "above"
    if interval.high < expect.against if is_above else interval.low > expect.against:
        return Verdict.NOT_REPRODUCED, f"the {expect.interval} lies {side} {expect.against:g}, the opposite"
    return Verdict.UNJUDGED, f"the {expect.interval} is neither {border} nor {side} {expect.against:g}"


def _wanted(expect: Expect) -> tuple[float, float, str]:
    """The open range that must contain the whole interval, in numbers and in words."""
    if expect.above is not None:
        return expect.above, math.inf, f"above {expect.above:g}"
    if expect.below is not None:
        return -math.inf, expect.below, f"below {expect.below:g}"
    assert expect.about is not None and expect.within is not None
    # A value equal to a limit must comply, e.g. a difference of 2 with a tolerance of 2. The slack allows for
    # rounding, which can change the last binary digit.
    slack = 1e-9 * max(abs(expect.about), expect.within)
    low, high = expect.about - expect.within - slack, expect.about + expect.within + slack
    return low, high, f"within {expect.about:g} {_PM} {expect.within:g}"


def judge_bound(
    expect: Expect, interval: metrics.Interval, least: float, most: float, bound: Bound
) -> tuple[Verdict, str]:
    """The verdict if only a bound of the value is known.

    The case is decided only if the bound is beyond the limit.
    """
    good, bad = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
    if bound is Bound.LOWER:
        if expect.at_most is not None and most > expect.at_most:
            return bad, f"more than {most:.4g}, {expect.at_most:g} allowed"
        if expect.at_least is not None and least >= expect.at_least:
            return good, f"at least {least:.4g}, {expect.at_least:g} needed"
        if expect.below is not None and interval.low > _opposite(expect, expect.below):
            return bad, f"more than {interval.low:.4g}, below {expect.below:g} needed"
        if expect.above is not None and interval.low > expect.above:
            return good, f"the {expect.interval} of the lower bounds lies above {expect.above:g}"
        if (
            expect.about is not None
            and expect.within is not None
            and interval.low > expect.about + expect.within
        ):
            return bad, f"more than {interval.low:.4g}, {expect.about:g} {_PM} {expect.within:g} needed"
    if bound is Bound.UPPER:
        if expect.at_most is not None and most <= expect.at_most:
            return good, f"at most {most:.4g}, {expect.at_most:g} allowed"
        if expect.at_least is not None and least < expect.at_least:
            return bad, f"less than {least:.4g}, {expect.at_least:g} needed"
        if expect.below is not None and interval.high < expect.below:
            return good, f"the {expect.interval} of the upper bounds lies below {expect.below:g}"
        if expect.above is not None and interval.high < _opposite(expect, expect.above):
            return bad, f"less than {interval.high:.4g}, above {expect.above:g} needed"
        if (
            expect.about is not None
            and expect.within is not None
            and interval.high < expect.about - expect.within
        ):
            return bad, f"less than {interval.high:.4g}, {expect.about:g} {_PM} {expect.within:g} needed"
    return Verdict.UNJUDGED, "some flows did not converge before the next one joined or the run ended"


def _opposite(expect: Expect, limit: float) -> float:
    """The limit beyond which a claim does not hold: `against` if the claim has it, otherwise `limit`."""
    return limit if expect.against is None else expect.against


def _bound(censored: list[bool]) -> Bound | None:
    """The kind of bound of the judged number. `censored` says which sides' values are only lower bounds."""
    if not any(censored):
        return None
    if all(censored) and len(censored) > 1:
        return Bound.NEITHER
    return Bound.LOWER if censored[0] else Bound.UPPER


def _combine(compare: str, values: list[float]) -> float:
    if compare == "value":
        return values[0]
    a, b = values
    if math.isclose(a, b, rel_tol=ALIKE):
        b = a
    if compare == "difference":
        return a - b
    if compare == "gain":
        return metrics.gain(a, b)
    return a / b if b != 0 else math.nan


def _verdict(holds: bool) -> Verdict:
    return Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED
