"""Expectations: conditions in a scenario that its results must meet. `narrows.expect` judges them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from narrows.errors import Expected
from narrows.scenario.fields import Data, Float, Quantity, Table


class Selection(Table):
    """The runs and flows that one side of a comparison measures."""

    where: dict[str, Data] = {}
    """A value, or a list of values, for factors of the sweep. Each value of another factor is judged."""
    args: dict[str, Data] = {}
    """Arguments of the measure, for this side only."""


class Expectation(Table):
    """A condition that the results must meet."""

    says: str = ""
    """The expectation in words, for reports. If left out: the measure and its limit."""
    measure: str
    """Name of the measure (`narrows list measures`)."""
    args: dict[str, Data] = {}
    """Arguments of the measure, e.g. `{ flows = "a*" }`."""
    where: dict[str, Data] = {}
    """A value, or a list of values, for factors of the sweep. Each value of another factor is judged."""
    than: Selection | None = None
    """The other side of a comparison. Its keys are added to `where` and `args`."""
    compare: Literal["difference", "ratio", "gain"] | None = None
    """The number that is computed from both sides for each seed. gain: how much larger the first side is, in
    percent."""
    at_least: Quantity | None = None
    """Lower limit of the value in each run."""
    at_most: Quantity | None = None
    """Upper limit of the value in each run."""
    above: Quantity | None = None
    """Limit below the confidence interval of the mean over seeds."""
    below: Quantity | None = None
    """Limit above the confidence interval of the mean over seeds."""
    about: Quantity | None = None
    """Middle of the range that contains the confidence interval of the mean over seeds."""
    within: Quantity | None = None
    """Half of the width of this range."""
    confidence: Annotated[Float, Field(ge=0.5, le=0.9999)] = 0.95
    """Level of the confidence interval."""

    @property
    def limits(self) -> dict[str, float | str]:
        """The given limits by key, `within` included."""
        keys = ("at_least", "at_most", "above", "below", "about", "within")
        values: dict[str, Any] = {key: getattr(self, key) for key in keys}
        return {key: value for key, value in values.items() if value is not None}

    @model_validator(mode="after")
    def _complete(self) -> Expectation:
        if len(self.limits.keys() - {"within"}) != 1:
            raise Expected("exactly one of at_least, at_most, above, below, about")
        if ("about" in self.limits) != ("within" in self.limits):
            raise Expected("about and within together")
        if (self.than is None) != (self.compare is None):
            raise Expected("than and compare together")
        return self
