"""What a study's TOML files may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

Factor = str | float | int | bool
"""A value of a factor: a name, or a number in SI base units."""
Where = dict[str, Factor | list[Factor]]
"""Which runs: the value of each named factor, or a list of values; factors not named are free."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Paper(_Table):
    """The paper a study reproduces."""

    title: str
    venue: str
    url: str | None = None


class Shorter(_Table):
    """A smaller experiment: fewer seeds, a shorter run, fewer values of a factor."""

    seeds: int = Field(default=2, ge=1)
    duration: str | None = None
    """The scenario's own if left out."""
    keep: Where = {}


class OnKernel(Shorter):
    """What an experiment is on real stacks, where each second of a run takes a second."""

    seeds: int = Field(default=1, ge=1)
    quick: Shorter = Shorter()
    """What it is with `--quick`: in place of the three above, not on top of them."""
    simulated_seeds: int = Field(default=10, ge=1)
    """Seeds of the simulation that stands beside it."""
    omit: list[str] = []
    """Keys of the scenario that only the simulator needs, e.g. the jitter that real hosts have by nature."""
    left_out: str = ""
    """Why it is less than the simulator's experiment, for the report."""
    never: str = ""
    """Why it is not run on real stacks at all; the rest then says nothing."""
    explained: list[str] = []
    """What is known of larger differences between simulation and kernel, for the report."""


class Recorded(_Table):
    """Recorded traces that are added to a sweep where they are at hand.

    The scenario file itself needs none.
    """

    key: str
    """The varied key; the scenario's own value comes first."""
    values: list[dict[str, Any]]
    """Values of the key; `file` is relative to the shared data folder."""


class Experiment(_Table):
    """One experiment: a scenario file with its sweep, and how its factors are called."""

    id: str
    title: str
    section: str = ""
    text: str = ""
    scenario: str = ""
    """The scenario file."""
    printed: str = ""
    """In its place a table that the paper prints (CSV): its rows are the runs, nothing is simulated."""
    factors: dict[str, str] = {}
    """Name of a factor to what the sweep calls it (a case or a dotted key), where the two differ."""
    recorded: Recorded | None = None
    """Recorded traces to add to the sweep."""
    quick: Shorter = Shorter()
    """What `--quick` runs."""
    kernel: OnKernel = OnKernel(never="the study says nothing of it")
    """What `--on kernel` runs."""

    @model_validator(mode="after")
    def _one_source(self) -> Experiment:
        if self.scenario and self.printed:
            raise ValueError("one of scenario and printed")
        return self

    @property
    def file(self) -> str:
        """Where its runs come from."""
        return self.scenario or self.printed


class FigureSpec(_Table):
    """One figure: a kind from the report's registry, the runs it shows, and what to see in it."""

    id: str
    experiment: str
    kind: str
    title: str
    caption: str
    where: Where = {}
    args: dict[str, Any] = {}


class Side(_Table):
    """One side of a comparison."""

    where: Where = {}
    args: dict[str, Any] = {}
    """Arguments of the measure that hold for this side only."""


class Expect(_Table):
    """What must hold of the measured value; exactly one.

    above, below: the confidence interval over seeds (of the paired difference, where two sides are compared)
    lies beyond (MET-91). about: the interval lies within `within` of the value. An interval that straddles a
    border decides nothing. at_least, at_most: every single run complies.
    """

    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    about: float | None = None
    within: float | None = None

    @model_validator(mode="after")
    def _one(self) -> Expect:
        given = [self.above, self.below, self.at_least, self.at_most, self.about]
        if sum(value is not None for value in given) != 1:
            raise ValueError("exactly one of above, below, at_least, at_most, about")
        if (self.about is None) != (self.within is None):
            raise ValueError("about and within belong together")
        return self


class Claim(_Table):
    """A sentence that can be true or false, and how it is decided here."""

    id: str
    group: Literal["paper", "ours"] = "paper"
    source: str
    says: str
    value: str = ""
    """The paper's value in words, e.g. `+25.6 %`; empty if it states none."""
    experiment: str
    figure: str | None = None
    measure: str
    args: dict[str, Any] = {}
    a: Side = Side()
    b: Side | None = None
    compare: Literal["value", "difference", "ratio", "gain"] = "value"
    """How `a` and `b` make one number, seed by seed. gain: 100 (a/b - 1) percent (MET-7)."""
    across: Literal["every", "any"] = "every"
    """Where factors stay free there are several cases: must it hold in every one, or in one at least?"""
    expect: Expect | None = None
    cannot: str = ""
    """Why no verdict is possible; what was measured is shown all the same."""
    note: str = ""
    """What a reader needs to judge the verdict."""

    @model_validator(mode="after")
    def _complete(self) -> Claim:
        if (self.b is None) != (self.compare == "value"):
            raise ValueError("`b` is for difference, ratio and gain, and they need it")
        if (self.expect is None) != bool(self.cannot):
            raise ValueError("either `expect` or the reason why a verdict `cannot` be given")
        return self


class Study(_Table):
    """A study: a paper, its experiments, its figures, its claims."""

    id: str
    title: str
    summary: str
    paper: Paper | None = None
    """None: a comparison of our own."""
    resolutions: list[str] = []
    """Gaps and contradictions of the paper, and how they were settled."""
    experiments: list[Experiment]
    figures: list[FigureSpec] = []
    claims: list[Claim] = []
    _folder: Path = PrivateAttr(default=Path())

    @property
    def folder(self) -> Path:
        """Where the study's files are."""
        return self._folder

    def experiment(self, identity: str) -> Experiment:
        """The experiment of that id."""
        return next(experiment for experiment in self.experiments if experiment.id == identity)

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        experiments = {experiment.id for experiment in self.experiments}
        figures = {figure.id for figure in self.figures}
        for what, items in (
            ("experiment", self.experiments),
            ("figure", self.figures),
            ("claim", self.claims),
        ):
            ids = [item.id for item in items]
            if len(set(ids)) != len(ids):
                raise ValueError(f"two {what}s of one id")
        users = {item.id: item.experiment for item in self.figures} | {
            item.id: item.experiment for item in self.claims
        }
        for identity, experiment in users.items():
            if experiment not in experiments:
                raise ValueError(f"{identity}: no experiment {experiment!r}")
        for claim in self.claims:
            if claim.figure is not None and claim.figure not in figures:
                raise ValueError(f"{claim.id}: no figure {claim.figure!r}")
        return self
