"""Expectations: conditions in a scenario that its results must meet. `narrows.expect` judges them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data]"
"""A value of a table whose keys the format does not fix."""

Compare = Literal["difference", "ratio", "gain"]
"""How the two sides of a comparison become one number for each seed."""

_LIMITS = ("at_least", "at_most", "above", "below", "about", "within")


@dataclass(frozen=True)
class Selection:
    """One side of a comparison."""

    where: dict[str, Data] = field(default_factory=dict)
    """The selected points of the sweep: for each named factor, a value or a list of values (empty: all
    points)."""
    args: dict[str, Data] = field(default_factory=dict)
    """Arguments of the measure."""


@dataclass(frozen=True)
class Expectation:
    """A condition that the results must meet. There is a separate verdict for each point of the sweep."""

    says: str
    """The expectation in words (empty: the measure and its limit)."""
    measure: str
    """Name of the measure."""
    first: Selection
    """The points to which the condition applies, and the arguments of the measure."""
    than: Selection | None
    """The second side of a comparison. From the first side, it inherits the keys that it does not set."""
    compare: Compare | None
    """How the two sides are compared."""
    limits: dict[str, float | str]
    """The limits that are set, by their keys, including `within`."""
    confidence: float | None
    """Level of the confidence interval (None: the default)."""

    @classmethod
    def of(cls, keys: dict[str, Any]) -> Expectation:
        """The expectation with these keys, which the native module has checked."""
        than = keys.get("than")
        return cls(
            says=keys["says"],
            measure=keys["measure"],
            first=Selection(keys["where"], keys["args"]),
            than=None if than is None else Selection(than["where"], than["args"]),
            compare=keys.get("compare"),
            limits={key: keys[key] for key in _LIMITS if key in keys},
            confidence=keys.get("confidence"),
        )
