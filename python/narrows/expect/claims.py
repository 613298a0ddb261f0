"""Turns the expectations of a scenario into claims, which `narrows.studies.judge` decides."""

from __future__ import annotations

from collections.abc import Callable

from narrows import units
from narrows.errors import Expected, ScenarioError, found, hint, one_of
from narrows.results.factors import Factor, Where, factor, same
from narrows.results.measures import MEASURES, Measure
from narrows.results.summary import point_text
from narrows.scenario.expectations import Expectation, Selection
from narrows.scenario.load import expand
from narrows.scenario.model import Scenario
from narrows.studies.judge import unit_of
from narrows.studies.model import Claim, Expect, Side

EXPERIMENT = "scenario"
"""Id of the experiment in a claim that is made from an expectation. Such a claim has only one experiment."""


def claims(scenario: Scenario) -> list[Claim]:
    """The scenario's expectations as claims.

    Raises:
        ScenarioError: for a measure, an argument, a factor or a limit that is not valid.
    """
    values = _values(scenario) if scenario.expect else {}
    made = []
    for i, expectation in enumerate(scenario.expect):
        try:
            made.append(_claim(expectation, f"expect.{i}", values))
        except ScenarioError as error:
            raise error.at(f"expect.{i}").in_source(scenario.source) from None
    return made


Values = dict[str, dict[Factor, str]]
"""The values of each factor of a sweep, each with the text that the scenario has for it."""


def _values(scenario: Scenario) -> Values:
    values: Values = {}
    for run in expand(scenario, 1):
        for name, value in run.factors.items():
            values.setdefault(name, {}).setdefault(factor(value), point_text(value))
    return values


def _claim(expectation: Expectation, identity: str, values: Values) -> Claim:
    if expectation.measure not in MEASURES:
        raise ScenarioError(one_of(expectation.measure, MEASURES, "a measure", "measures"), "measure")
    measure, compare = MEASURES[expectation.measure], expectation.compare or "value"
    unit = unit_of(compare, measure)
    limits = {key: _limit(value, unit, key) for key, value in expectation.limits.items()}
    if expectation.confidence is not None:
        limits["confidence"] = expectation.confidence
    first, than = expectation.first, expectation.than
    sides = [_side(first, measure, values, "")]
    if than is not None:
        second = Selection(first.where | than.where, first.args | than.args)
        sides.append(_side(second, measure, values, "than."))
    return Claim(
        id=identity,
        group="ours",
        source="",
        says=expectation.says or _sentence(expectation, measure, unit),
        experiment=EXPERIMENT,
        measure=measure.name,
        a=sides[0],
        b=sides[1] if len(sides) > 1 else None,
        compare=compare,
        expect=Expect(**limits),
    )


def _side(selection: Selection, measure: Measure, values: Values, place: str) -> Side:
    try:
        measure.check(selection.args)
    except ScenarioError as error:
        raise error.at(f"{place}args") from None
    where: Where = {}
    for name, wanted in selection.where.items():
        if name not in values:
            message = f"found a name that is not a factor of the sweep{hint(name, values)}"
            raise ScenarioError(message, f"{place}where.{name}")
        options = wanted if isinstance(wanted, list) else [wanted]
        for option in options:
            if not any(same(factor(option), value) for value in values[name]):
                listed = ", ".join(values[name].values())
                message = f"found {found(option)}, expected a value of the sweep: {listed}"
                raise ScenarioError(message, f"{place}where.{name}")
        # Tables of results have no column for a factor that has only one value.
        if len(values[name]) > 1:
            chosen = [factor(option) for option in options]
            where[name] = chosen if isinstance(wanted, list) else chosen[0]
    return Side(where=where, args=dict(selection.args))


_PARSERS: dict[str, tuple[Callable[[object], float], float]] = {
    "Mbit/s": (units.parse_rate, 1e-6),
    "ms": (units.parse_duration, 1e-6),
    "s": (units.parse_duration, 1e-9),
    "%": (units.parse_share, 100.0),
    "": (units.parse_share, 1.0),
}
"""For each unit of a measure: the parser of a limit's text, and the factor that converts the parsed number to
the unit."""


def _limit(value: float | str, unit: str, key: str) -> float:
    """The limit in the measure's unit."""
    if not isinstance(value, str):
        return float(value)
    if unit not in _PARSERS:
        raise ScenarioError(f"found {found(value)}, expected a number in {unit}", key)
    parse, scale = _PARSERS[unit]
    try:
        return parse(value) * scale
    except Expected as error:
        plain = f", or a number in {unit}" if unit else ", or a number"
        raise ScenarioError(f"found {found(value)}, expected {error}{plain}", key) from None


_WORDS = {"at_least": "at least", "at_most": "at most"}
_COMPARED = {"difference": "minus", "ratio": "divided by", "gain": "gain over"}


def _sentence(expectation: Expectation, measure: Measure, unit: str) -> str:
    """The expectation in words."""
    limits = dict(expectation.limits)
    within = f" \N{PLUS-MINUS SIGN} {limits.pop('within')}" if "within" in limits else ""
    ((key, value),) = limits.items()
    stated = f" {unit}" if unit and not isinstance(value, str) else ""
    other = ""
    if expectation.than is not None:
        chosen = _chosen(expectation.than) or " the same"
        other = f" {_COMPARED[expectation.compare or 'difference']}{chosen}"
    own = _chosen(expectation.first)
    return f"{measure.title}{own}{other}: {_WORDS.get(key, key)} {value}{within}{stated}"


def _chosen(selection: Selection) -> str:
    """The arguments and factors of one side of a comparison in words, with a leading space."""
    parts = [f"{name} {value}" for name, value in (selection.args | selection.where).items()]
    return f" ({', '.join(parts)})" if parts else ""
