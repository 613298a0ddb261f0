"""Models of a study's TOML files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from narrows import metrics
from narrows.errors import Expected, ScenarioError, choice, found
from narrows.results.factors import Factor, Where, same

JUDGED_SEEDS = 3
"""Default number of seeds on real stacks, if a claim needs a confidence interval. With two runs (one degree
of freedom), the interval extends 9 standard deviations to each side of the mean (Student's t, 95 %). With
three runs, it extends 2.5."""
MAX_HOSTS = 254
"""Largest number of hosts in a ping attempt. The limit exists because addresses differ only in the last
byte."""
REPAIRED = "repaired"
"""Label of the repaired form of an algorithm."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Paper(_Table):
    """The paper that a study reproduces."""

    title: str
    venue: str
    url: str | None = None


class Shorter(_Table):
    """A smaller form of an experiment, with fewer seeds, a shorter run, or fewer values of a factor."""

    seeds: int = Field(default=2, ge=1)
    duration: str | None = None
    """Duration of a run (None: as in the scenario)."""
    keep: Where = {}


class OnKernel(Shorter):
    """The experiment's form on real stacks, where a second of a run takes a second of real time."""

    seeds: int = Field(default=0, ge=0)
    """Number of seeds (0: `JUDGED_SEEDS` if a claim needs a confidence interval, else 1)."""
    quick: Shorter = Shorter()
    """The form with `--quick`. Its values replace the three fields of `Shorter`."""
    simulated_seeds: int = Field(default=10, ge=1)
    """Number of seeds of the simulation that is compared with the real stacks."""
    omit: list[str] = []
    """Keys of the scenario that only the simulator uses, e.g. jitter, which real hosts have anyway."""
    left_out: str = ""
    """The reason, printed in the report, why this form is smaller than the simulator's experiment."""
    never: str = ""
    """The reason why the experiment does not run on real stacks. If it is set, other fields have no
    effect."""
    explained: list[str] = []
    """Explanations of large differences between simulation and kernel, for the report."""


class FreeInput(Shorter):
    """An input that the paper does not give. Its value is therefore our choice.

    Claims are also judged with other values. If the verdict differs between the values, the claim cannot be
    judged. The input is a key of the scenario, a factor of the sweep that claims name, or an argument of
    measures. If it is a key, the experiment runs again with each other value.
    """

    id: str
    """Name of the input. The additional runs have a factor with this name."""
    key: str = ""
    """Key of the scenario (dotted)."""
    factor: str = ""
    """Factor of the sweep."""
    arg: str = ""
    """Argument of measures."""
    ours: Factor
    """Our value, as written in the scenario or the claims."""
    others: list[Factor] = Field(min_length=1)
    """Other values that the paper allows."""
    why: str
    """A sentence that says what the paper leaves open."""
    seeds: int = Field(default=2, ge=2)
    """Maximum number of seeds of the additional runs. The fields `keep` and `duration` also apply to these
    runs."""
    quick: bool = False
    """Whether `--quick` also runs the additional runs."""

    @model_validator(mode="after")
    def _one_place(self) -> FreeInput:
        if sum(map(bool, (self.key, self.factor, self.arg))) != 1:
            raise Expected("exactly one of key, factor, arg")
        return self


class Recorded(_Table):
    """Recorded traces that are added to a sweep if they are in the data folder.

    The scenario also runs without these traces.
    """

    key: str
    """The key that the sweep varies. The first value of the sweep is the value in the scenario."""
    values: list[dict[str, Any]]
    """Values of the key. `file` is relative to the data folder."""


class Computed(_Table):
    """A model of the paper, whose solutions are runs (`narrows.studies.computed`)."""

    model: str
    args: dict[str, Any] = {}


class Transfers(_Table):
    """An experiment of iperf3 transfers between two hosts, which `--as-published` performs on real stacks."""

    algorithms: list[str] = Field(min_length=1)
    """Congestion control algorithms. Each algorithm has its own transfers."""
    seconds: int = Field(default=10, ge=1)
    """Duration of a transfer."""
    repetitions: int = Field(default=JUDGED_SEEDS, ge=1)
    """Number of transfers of each algorithm. The paper may have fewer, but claims need a confidence
    interval."""
    rate: str
    """Rate of the queueing discipline tbf at every port, in the notation of tc(8)."""
    burst: int = Field(ge=1)
    """Size of tbf's bucket, bytes."""
    limit: int = Field(ge=1)
    """Maximum length of tbf's queue, bytes."""
    mtu: int = Field(default=1500, ge=576)
    """MTU of every port, bytes."""
    paper: str = ""
    """The experiment with the paper's table, whose rows are added to the runs."""
    quick_seconds: int = Field(default=2, ge=1)
    """Duration of a transfer with `--quick`, which has one repetition."""


class Attempts(_Table):
    """An experiment of pings between all hosts of a switch, which `--as-published` performs."""

    hosts: list[Annotated[int, Field(ge=2, le=MAX_HOSTS)]] = Field(min_length=1)
    """Numbers of hosts. Each number has its own attempts."""
    count: int = Field(default=20, ge=1)
    """Pings of each host in an attempt."""
    interval_ms: int = Field(default=50, ge=1)
    """Time between two pings of a host."""
    repetitions: int = Field(default=10, ge=1)
    """Attempts for each number of hosts."""


class Experiment(_Table):
    """One experiment: a scenario file with its sweep, and the names of its factors."""

    id: str
    title: str
    section: str = ""
    text: str = ""
    scenario: str = ""
    """The scenario file."""
    set: dict[str, Any] = {}
    """Keys of the scenario (dotted) that differ from the file, and their values."""
    printed: str = ""
    """A CSV file with a table of the paper, given instead of `scenario`. The rows of the table are the runs,
    and nothing is simulated."""
    computed: Computed | None = None
    """A model whose solutions are runs. If there is also a scenario, each run has the factor `by` with the
    value `simulation` or `model`."""
    iperf3: Transfers | None = None
    """Transfers, given instead of `scenario`. Only `--as-published` performs them."""
    pings: Attempts | None = None
    """Attempts to ping, given instead of `scenario`. Only `--as-published` performs them."""
    factors: dict[str, str] = {}
    """Key of each factor in the sweep (`case` or a dotted key), for factors whose name differs from the
    key."""
    recorded: Recorded | None = None
    """Recorded traces to add to the sweep."""
    free: list[FreeInput] = []
    """Inputs that the paper does not give."""
    quick: Shorter = Shorter()
    """The experiment's form with `--quick`."""
    kernel: OnKernel = OnKernel(never="the study does not mention it")
    """The experiment's form with `--on kernel`."""

    @model_validator(mode="after")
    def _one_source(self) -> Experiment:
        if self.printed and (self.scenario or self.computed):
            raise Expected("printed without scenario and computed")
        if self.is_as_published and (self.file or self.computed or (self.iperf3 and self.pings)):
            raise Expected("one of iperf3 and pings, without scenario, printed and computed")
        if self.set and not self.scenario:
            raise Expected("set with scenario")
        for item in self.free:
            if item.key and (item.id in self.factors or item.key in self.factors.values()):
                raise Expected(f"a free input that no run varies instead of {item.id!r}")
        return self

    @property
    def is_as_published(self) -> bool:
        """Whether only `--as-published` runs this experiment."""
        return self.iperf3 is not None or self.pings is not None

    @property
    def file(self) -> str:
        """Source file of the runs."""
        return self.scenario or self.printed


class FigureSpec(_Table):
    """A figure, given as a kind from the report's registry, the runs that it shows, and its caption."""

    id: str
    experiment: str
    kind: str
    title: str
    caption: str
    """The first sentence of the caption says what the figure shows. The index of figures prints this
    sentence."""
    where: Where = {}
    args: dict[str, Any] = {}
    free: str = ""
    """The free input of the experiment that the figure varies (empty: none)."""


class TableColumn(_Table):
    """A column of a paper's table, with the paper's values next to the measured values."""

    title: str
    measure: str
    args: dict[str, Any] = {}
    where: Where = {}
    paper: dict[str, float | str] = {}
    """The paper's value in each row, by the row's name."""
    printed: str = ""
    """The column of the table file that has the paper's values. It is given instead of `paper`."""

    @model_validator(mode="after")
    def _one_source(self) -> TableColumn:
        if self.paper and self.printed:
            raise Expected("at most one of paper and printed")
        return self


class TableSpec(_Table):
    """A table of the paper, with our values next to its values."""

    id: str
    experiment: str
    title: str
    caption: str = ""
    rows: str = "algorithm"
    """The factor whose values are the rows."""
    where: Where = {}
    columns: list[TableColumn] = Field(min_length=1)
    printed: str = ""
    """The experiment with the paper's table, for columns with `printed`."""


class OverviewPanel(_Table):
    """A panel of a study's overview: a column of the experiments' tables."""

    column: str
    """Title of the column. Experiments whose tables do not have it are left out."""
    title: str
    scale: list[float] = Field(min_length=3, max_length=3)
    """The values that have the shades for bad, neutral and good."""
    log: bool = False
    """Whether shades follow the logarithm of the value."""
    percent: bool = False
    """Whether fractions are written in percent."""


class Overview(_Table):
    """A figure that compares the algorithms in all experiments."""

    id: str = "overview"
    title: str
    caption: str
    panels: list[OverviewPanel] = Field(min_length=1)


class Side(_Table):
    """One side of a comparison."""

    where: Where = {}
    args: dict[str, Any] = {}
    """Arguments of the measure for this side only."""


class Expect(_Table):
    """The condition on the measured value. Exactly one of the fields below must be given.

    above, below: the confidence interval over seeds must be beyond the value (MET-91). If two sides are
    compared, it is the interval of the paired difference. about: the interval must be within `within` of the
    value. If the interval contains a limit, the claim cannot be judged. at_least, at_most: every run must
    comply.

    against: a second limit, for claims in words such as "gently", for which the paper gives no number. The
    claim does not hold if the interval is beyond `against` on the other side. If the interval is not beyond
    either limit, the claim cannot be judged. The verdict therefore does not depend on a single limit of our
    choice.
    """

    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    about: float | None = None
    within: float | None = None
    against: float | None = None
    confidence: float = Field(default=metrics.CONFIDENCE, gt=0.0, lt=1.0)
    """Level of the confidence interval."""

    @property
    def interval(self) -> str:
        """The name of the interval in sentences."""
        return f"{100 * self.confidence:.6g} % interval"

    @property
    def needs_interval(self) -> bool:
        """Whether a confidence interval decides the verdict. A single run then has no verdict."""
        return self.at_least is None and self.at_most is None

    @model_validator(mode="after")
    def _one(self) -> Expect:
        given = [self.above, self.below, self.at_least, self.at_most, self.about]
        if sum(value is not None for value in given) != 1:
            raise Expected("exactly one of above, below, at_least, at_most, about")
        if (self.about is None) != (self.within is None):
            raise Expected("about and within together")
        if self.against is not None and not (
            (self.above is not None and self.against < self.above)
            or (self.below is not None and self.against > self.below)
        ):
            raise Expected("against below the limit of above, or above the limit of below")
        return self


class Claim(_Table):
    """A sentence that can be true or false, and its test."""

    id: str
    group: Literal["paper", "ours"] = "paper"
    source: str
    says: str
    value: str = ""
    """The paper's value in words, e.g. `+25.6 %` (empty: the paper states no value)."""
    experiment: str
    figure: str | None = None
    measure: str
    args: dict[str, Any] = {}
    a: Side = Side()
    b: Side | None = None
    order: list[list[str | float]] = []
    """Values of a factor in the order that the paper gives, largest measurement first. Given instead of `b`.

    There is a case for each pair of values from different groups. Values within one group are not compared.
    """
    order_of: str = "algorithm"
    """The factor of `order`."""
    compare: Literal["value", "difference", "ratio", "gain"] = "value"
    """The number that is computed from `a` and `b` for each seed. `gain` is 100 (a/b - 1) percent (MET-7)."""
    across: Literal["every", "any"] = "every"
    """If free factors make several cases: whether the claim must hold in every case or in at least one
    case."""
    expect: Expect | None = None
    cannot: str = ""
    """Reason why no verdict is possible. The measured value is still shown."""
    note: str = ""
    """Explanation of the verdict for the reader."""

    @model_validator(mode="after")
    def _complete(self) -> Claim:
        if self.b is not None and self.order:
            raise Expected("either `b` or `order`")
        if (self.b is None and not self.order) != (self.compare == "value"):
            raise Expected("`b` with difference, ratio and gain, and only with them")
        if (self.expect is None) != bool(self.cannot):
            raise Expected("either `expect` or `cannot`, the reason for no verdict")
        return self


def instead(claim: Claim, name: str, old: Factor, new: Factor) -> Claim:
    """The claim with another value of a factor. Sides that do not name the old value are unchanged."""

    def changed(side: Side) -> Side:
        wanted = side.where.get(name)
        value: Factor | list[Factor] | None = (
            [new if same(item, old) else item for item in wanted]
            if isinstance(wanted, list)
            else new
            if wanted is not None and same(wanted, old)
            else wanted
        )
        return (
            side
            if wanted == value or value is None
            else side.model_copy(update={"where": {**side.where, name: value}})
        )

    update = {"a": changed(claim.a), "b": changed(claim.b) if claim.b is not None else None}
    return claim.model_copy(update=update)


class Reading(_Table):
    """An algorithm with two forms, one as the paper prints it and one repaired.

    Claims name one of the forms. Each claim of the paper is also judged on the other form.
    """

    repaired: str
    """The value of the factor for the repaired algorithm."""
    printed: str
    """The value for the algorithm of the paper."""
    claims: Literal["repaired", "printed"] = "repaired"
    """The form that claims name. The report counts the verdicts on this form first."""
    label: str = "as printed"
    """Label of the paper's form."""
    factor: str = "algorithm"

    @property
    def forms(self) -> tuple[str, str]:
        """The form that claims name, then the other form."""
        pair = (self.repaired, self.printed)
        return pair if self.claims == "repaired" else pair[::-1]

    @property
    def words(self) -> tuple[str, str]:
        """The forms in words, in the order of `forms`."""
        pair = (REPAIRED, self.label)
        return pair if self.claims == "repaired" else pair[::-1]


class Study(_Table):
    """A study: a paper, experiments, figures and claims."""

    id: str
    title: str
    summary: str
    paper: Paper | None = None
    """The paper (None: a comparison of our own)."""
    resolutions: list[str] = []
    """Gaps and contradictions of the paper, and our choices."""
    readings: list[Reading] = []
    """Algorithms with two readings. The readings of all of them have the same labels (`Reading.words`)."""
    experiments: list[Experiment]
    figures: list[FigureSpec] = []
    tables: list[TableSpec] = []
    """Tables of measures by algorithm, e.g. those of the paper."""
    overview: Overview | None = None
    """The figure at the top of the page (None: none)."""
    claims: list[Claim] = []
    _folder: Path = PrivateAttr(default=Path())

    @property
    def folder(self) -> Path:
        """Folder of the study's files."""
        return self._folder

    def experiment(self, identity: str) -> Experiment:
        """The experiment of that id."""
        return next(experiment for experiment in self.experiments if experiment.id == identity)

    def real_seeds(self, experiment: Experiment) -> int:
        """The number of seeds of an experiment on real stacks."""
        claims = [claim for claim in self.claims if claim.experiment == experiment.id]
        needed = any(claim.expect is not None and claim.expect.needs_interval for claim in claims)
        return experiment.kernel.seeds or (JUDGED_SEEDS if needed else 1)

    def free_input(self, experiment: str, identity: str) -> FreeInput:
        """The free input of that id."""
        return next(item for item in self.experiment(experiment).free if item.id == identity)

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        """Check ids and references.

        This raises its own errors instead of pydantic's, because its errors name the key.
        """
        _unique(self.experiments, "experiments")
        _unique(self.figures, "figures")
        _unique(self.claims, "claims")
        _unique(self.tables, "tables")
        experiments = [experiment.id for experiment in self.experiments]
        figures = [figure.id for figure in self.figures]
        if self.overview is not None:
            figures.append(self.overview.id)
            titles = [column.title for table in self.tables for column in table.columns]
            for i, panel in enumerate(self.overview.panels):
                _known(panel.column, titles, f"overview.panels.{i}.column")
        kinds = (("figures", self.figures), ("claims", self.claims), ("tables", self.tables))
        for kind, users in kinds:
            for user in users:
                _known(user.experiment, experiments, f"{kind}.{user.id}.experiment")
        for figure in self.figures:
            if figure.free:
                free = self.experiment(figure.experiment).free
                _known(figure.free, [item.id for item in free if item.key], f"figures.{figure.id}.free")
        printed = [experiment.id for experiment in self.experiments if experiment.printed]
        for experiment in self.experiments:
            if experiment.iperf3 is not None and experiment.iperf3.paper:
                _known(experiment.iperf3.paper, printed, f"experiments.{experiment.id}.iperf3.paper")
        for table in self.tables:
            if table.printed or any(column.printed for column in table.columns):
                _known(table.printed, printed, f"tables.{table.id}.printed")
        for claim in self.claims:
            if claim.figure is not None:
                _known(claim.figure, figures, f"claims.{claim.id}.figure")
        for i, reading in enumerate(self.readings):
            # The report uses one pair of labels for all algorithms with two forms.
            _known(reading.claims, [self.readings[0].claims], f"readings.{i}.claims")
            _known(reading.label, [self.readings[0].label], f"readings.{i}.label")
        for experiment in self.experiments:
            _unique(experiment.free, f"experiments.{experiment.id}.free")
            for item in experiment.free:
                self._check_named(experiment, item)
        return self

    def _check_named(self, experiment: Experiment, item: FreeInput) -> None:
        """Check that claims name the free input with our value, if it is an argument or a factor."""
        claims = [claim for claim in self.claims if claim.experiment == experiment.id]
        place = f"experiments.{experiment.id}.free.{item.id}"
        named: dict[str, list[Factor]] = {}
        for claim in claims:
            for name, value in _pairs(claim, item):
                named.setdefault(name, []).append(value)
        kind, wanted = ("arg", item.arg) if item.arg else ("factor", item.factor)
        if not wanted:
            return
        _known(wanted, named, f"{place}.{kind}")
        if not any(same(value, item.ours) for value in named[wanted]):
            values = list(dict.fromkeys(map(str, named[wanted])))
            raise ScenarioError(choice(item.ours, values), f"{place}.ours")


def _pairs(claim: Claim, item: FreeInput) -> list[tuple[str, Factor]]:
    """Names and values of the arguments of a claim's measure, or of the factors of its sides."""
    sides = [claim.a.where, claim.b.where if claim.b else {}]
    tables: list[dict[str, Any]] = [claim.args] if item.arg else list(sides)
    return [
        (name, value)
        for table in tables
        for name, values in table.items()
        for value in (values if isinstance(values, list) else [values])
    ]


def _unique(items: Sequence[Experiment | FigureSpec | TableSpec | Claim | FreeInput], key: str) -> None:
    counts = Counter(item.id for item in items)
    for identity, count in counts.items():
        if count > 1:
            raise ScenarioError(f"found {count} entries with the id {identity!r}, expected one", key)


def _known(name: str, names: Iterable[str], key: str) -> None:
    if name not in (known := list(names)):
        raise ScenarioError(choice(name, known) if known else f"found {found(name)}, expected none", key)
