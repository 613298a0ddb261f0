"""Finds the verdicts that depend on an input that the paper does not give.

Claims are judged again with other values of the input (`FreeInput`). If a case of a claim holds with one
value but not with another value, the case cannot be judged, because the paper does not give the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from narrows.results.factors import Factor, factor, same
from narrows.results.runs import Run, Runs
from narrows.studies.judge import Case, Finding, Verdict, judge, overall
from narrows.studies.model import Claim, Experiment, FreeInput, instead

Varied = Mapping[str, Runs]
"""For each free input of an experiment, the additional runs that vary it. The input is a factor of these
runs."""

_ARE = {False: "is our choice", True: "are our choices"}
_WORDS = {Verdict.REPRODUCED: "holds", Verdict.NOT_REPRODUCED: "does not hold"}


def judge_choices(claim: Claim, experiment: Experiment, runs: Mapping[str, Runs], varied: Varied) -> Finding:
    """Judge a claim with our values of the free inputs, and with the other values that the paper allows."""
    finding = judge(claim, runs)
    if claim.cannot or not finding.cases:
        return finding
    turned: dict[int, list[str]] = {}
    tried = []
    for item in experiment.free:
        elsewhere = _elsewhere(claim, item, runs, varied)
        tried += _other_values(item, finding, elsewhere)
        for i, case in enumerate(finding.cases):
            sentence = _dependence(item, case, elsewhere)
            if sentence:
                turned.setdefault(i, []).append(sentence)
    if not turned:
        missing = [item.id for item in experiment.free if item.key and item.id not in varied]
        parts = [finding.why, *tried]
        if missing and finding.verdict is not Verdict.UNJUDGED:
            parts.append(
                f"not run with other values of {' and '.join(missing)}, which {_ARE[len(missing) > 1]}"
            )
        return replace(finding, why="; ".join(parts))
    cases = [
        replace(case, verdict=Verdict.UNJUDGED, why="; ".join(turned[i])) if i in turned else case
        for i, case in enumerate(finding.cases)
    ]
    verdict, why = overall(claim, cases)
    return replace(finding, verdict=verdict, why=why, cases=tuple(cases))


def with_input(item: FreeInput, runs: Iterable[Run], varied: Runs) -> Runs:
    """The runs that vary a free input, and the experiment's runs that differ from them only in this input."""
    settings = {_without(run.factors, item.id) for run in varied}
    own = [run for run in runs if _without(run.factors, item.id) in settings]
    return Runs(
        [*(replace(run, factors={**run.factors, item.id: factor(item.ours)}) for run in own), *varied]
    )


Elsewhere = Mapping[str, Mapping[frozenset[tuple[str, Factor]], Verdict]]
"""For each value of an input except ours, the verdict on each case. The key of a case consists of all its
factors except the input."""


def _elsewhere(claim: Claim, item: FreeInput, runs: Mapping[str, Runs], varied: Varied) -> Elsewhere:
    """For each value of the input except ours, the verdicts on the claim's cases."""
    found = {}
    for value in item.others:
        if item.key:
            group = varied.get(item.id, Runs([]))
            cases = judge(
                claim, {claim.experiment: Runs(r for r in group if same(r.factors[item.id], factor(value)))}
            ).cases
        else:
            other = _with(claim, item, value)
            cases = judge(other, runs).cases if other != claim else ()
        if cases:
            found[str(value)] = {_without(dict(case.factors), item.id): case.verdict for case in cases}
    return found


def _with(claim: Claim, item: FreeInput, value: Factor) -> Claim:
    """The claim with another value of the free input.

    A claim that does not name the input is returned unchanged.
    """
    if item.factor:
        return instead(claim, item.factor, item.ours, value)
    named = item.arg in claim.args and same(claim.args[item.arg], item.ours)
    args = {**claim.args, item.arg: value} if named else claim.args
    return claim.model_copy(update={"args": args})


def _other_values(item: FreeInput, finding: Finding, elsewhere: Elsewhere) -> list[str]:
    """Sentences about the other values of an input, grouped by their effect.

    There are three effects: all verdicts stay the same, a case can no longer be judged, or an open case is
    decided. `_dependence` reports opposite verdicts.
    """
    same_, open_, decided = [], [], []
    for value, verdicts in elsewhere.items():
        pairs = [
            (case.verdict, verdicts[here])
            for case in finding.cases
            if (here := _without(dict(case.factors), item.id)) in verdicts
        ]
        if any(ours is not Verdict.UNJUDGED and other is Verdict.UNJUDGED for ours, other in pairs):
            open_.append(value)
        elif any(ours is Verdict.UNJUDGED and other is not Verdict.UNJUDGED for ours, other in pairs):
            decided.append(value)
        elif pairs:
            same_.append(value)
    is_open = finding.verdict is Verdict.UNJUDGED
    return [
        f"{words} with {item.id} {' or '.join(values)}"
        for words, values in (
            ("not decided either" if is_open else "no other verdict", same_),
            ("cannot be judged", open_),
            ("decided", decided),
        )
        if values
    ]


def _dependence(item: FreeInput, case: Case, elsewhere: Elsewhere) -> str:
    """A sentence that says how a case's verdict depends on the input (empty: it does not depend)."""
    here = _without(dict(case.factors), item.id)
    found = {str(item.ours): case.verdict}
    found |= {value: verdicts[here] for value, verdicts in elsewhere.items() if here in verdicts}
    decided = {value: verdict for value, verdict in found.items() if verdict is not Verdict.UNJUDGED}
    if len(set(decided.values())) < 2:
        return ""
    parts = [
        f"it {_WORDS[verdict]} with {' and '.join(v for v in decided if decided[v] is verdict)}"
        for verdict in dict.fromkeys(decided.values())
    ]
    return f"the verdict depends on {item.id}, which is our choice: {', '.join(parts)}"


def _without(factors: Mapping[str, Factor], name: str) -> frozenset[tuple[str, Factor]]:
    """The factors without the factor `name`."""
    return frozenset((key, value) for key, value in factors.items() if key != name)
