"""Turns the expectations of a scenario into claims, which the judge of the studies decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from narrows import units
from narrows.errors import Expected, ScenarioError, found, hint, one_of
from narrows.results.factors import Factor, Where, factor, same
from narrows.results.measures import MEASURES, Measure, unfit
from narrows.scenario.expectations import Expectation, Selection
from narrows.scenario.load import expand
from narrows.scenario.model import Scenario
from narrows.studies.model import Claim, Expect, Side

EXPERIMENT = "scenario"
"""Id of the only experiment of an expectation's claim."""


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


def _values(scenario: Scenario) -> dict[str, list[Factor]]:
    """The values of each factor of the sweep."""
    values: dict[str, list[Factor]] = {}
    for run in expand(scenario, 1):
        for name, value in run.factors.items():
            known = values.setdefault(name, [])
            if (item := factor(value)) not in known:
                known.append(item)
    return values


def _claim(expectation: Expectation, identity: str, values: Mapping[str, list[Factor]]) -> Claim:
    if expectation.measure not in MEASURES:
        raise ScenarioError(one_of(expectation.measure, MEASURES, "a measure", "measures"), "measure")
    measure = MEASURES[expectation.measure]
    unit = {"ratio": "", "gain": "%"}.get(expectation.compare or "", measure.unit)
    limits = {key: _limit(value, unit, key) for key, value in expectation.limits.items()}
    first = Selection(where=expectation.where, args=expectation.args)
    sides = [_side(first, measure, values, "")]
    if expectation.than is not None:
        second = Selection(
            where=expectation.where | expectation.than.where, args=expectation.args | expectation.than.args
        )
        sides.append(_side(second, measure, values, "than."))
    return Claim(
        id=identity,
        group="ours",
        source="",
        says=expectation.says or _sentence(expectation, measure),
        experiment=EXPERIMENT,
        measure=measure.name,
        a=sides[0],
        b=sides[1] if len(sides) > 1 else None,
        compare=expectation.compare or "value",
        expect=Expect(**limits, confidence=expectation.confidence),
    )


def _side(selection: Selection, measure: Measure, values: Mapping[str, list[Factor]], place: str) -> Side:
    if (problem := unfit(measure, selection.args)) is not None:
        name, message = problem
        raise ScenarioError(message, f"{place}args.{name}")
    where: Where = {}
    for name, wanted in selection.where.items():
        if name not in values:
            message = f"found an unknown factor of the sweep{hint(name, values)}"
            raise ScenarioError(message, f"{place}where.{name}")
        options = [factor(item) for item in wanted] if isinstance(wanted, list) else [factor(wanted)]
        for option in options:
            if not any(same(option, value) for value in values[name]):
                listed = ", ".join(_plain(value) for value in values[name])
                message = f"found {found(option)}, expected a value of the sweep: {listed}"
                raise ScenarioError(message, f"{place}where.{name}")
        # Tables of results have no factor with one value.
        if len(values[name]) > 1:
            where[name] = options if isinstance(wanted, list) else options[0]
    return Side(where=where, args=dict(selection.args))


def _plain(value: Factor) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_PARSERS: dict[str, tuple[Callable[[object], float], float]] = {
    "Mbit/s": (units.parse_rate, 1e-6),
    "ms": (units.parse_duration, 1e-6),
    "s": (units.parse_duration, 1e-9),
    "%": (units.parse_share, 100.0),
    "": (units.parse_share, 1.0),
}
"""For each unit of measures: the parser of text, and the factor to this unit."""


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


def _sentence(expectation: Expectation, measure: Measure) -> str:
    """The expectation in words."""
    limits = expectation.limits
    within = f" \N{PLUS-MINUS SIGN} {limits.pop('within')}" if "within" in limits else ""
    ((key, value),) = limits.items()
    unit = (
        measure.unit if expectation.compare in (None, "difference") else "%" * (expectation.compare == "gain")
    )
    stated = f" {unit}" if unit and not isinstance(value, str) else ""
    other = ""
    if expectation.than is not None:
        chosen = _chosen(expectation.than) or " the same"
        other = f" {_COMPARED[expectation.compare or 'difference']}{chosen}"
    own = _chosen(Selection(where=expectation.where, args=expectation.args))
    return f"{measure.title}{own}{other}: {_WORDS.get(key, key)} {value}{within}{stated}"


def _chosen(selection: Selection) -> str:
    """The arguments and factors of a side in words, with a leading space."""
    parts = [f"{name} {value}" for name, value in (selection.args | selection.where).items()]
    return f" ({', '.join(parts)})" if parts else ""
