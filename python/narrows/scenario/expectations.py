"""Expectations: conditions in a scenario that its results must meet. `narrows.expect` judges them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from narrows.errors import Expected
from narrows.scenario.fields import Data, Float, Quantity, Table


class Selection(Table):
    """One side of a comparison."""

    where: dict[str, Data] = {}
    """The selected points of the sweep: for each named factor, a value or a list of values
    (default: all points)."""
    args: dict[str, Data] = {}
    """Arguments of the measure."""


class Expectation(Table):
    """A condition that the results must meet. There is a separate verdict for each point of the sweep."""

    says: str = ""
    """The expectation in words, for reports (default: the measure and its limit)."""
    measure: str
    """Name of the measure (`narrows list measures`)."""
    args: dict[str, Data] = {}
    """Arguments of the measure, e.g. `{ flows = "a*" }`."""
    where: dict[str, Data] = {}
    """The points of the sweep to which the condition applies: for some factors, a value or a list of values,
    e.g. `{ "topology.rate" = "50mbit" }` (default: all points)."""
    than: Selection | None = None
    """The second side of a comparison. From the first side, it inherits the keys of `where` and `args` that
    it does not set."""
    compare: Literal["difference", "ratio", "gain"] | None = None
    """How the two sides become one number for each seed: the difference (first minus second), the ratio
    (first divided by second), or the gain (by how many percent the first is larger)."""
    at_least: Quantity | None = None
    """The smallest value that a run may have."""
    at_most: Quantity | None = None
    """The largest value that a run may have."""
    above: Quantity | None = None
    """The confidence interval of the mean over seeds must lie above this value."""
    below: Quantity | None = None
    """The confidence interval of the mean over seeds must lie below this value."""
    about: Quantity | None = None
    """The confidence interval of the mean over seeds must lie between `about` - `within` and `about` +
    `within`."""
    within: Quantity | None = None
    """The largest permitted deviation from `about`."""
    confidence: Annotated[Float, Field(ge=0.5, le=0.9999)] | None = None
    """Level of the confidence interval (default: 0.95)."""

    @property
    def limits(self) -> dict[str, float | str]:
        """The limits that are set, by their keys, including `within`."""
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
