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
"""Default number of seeds on real stacks, if a claim needs a confidence interval. With two runs, the 95 %
interval (Student's t) extends 9 standard deviations to each side of the mean. With three runs, it extends 2.5
standard deviations."""
MAX_HOSTS = 254
"""Maximum number of hosts in a ping attempt, because the hosts' addresses differ only in the last byte."""
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
    """The form of an experiment on real stacks.

    It can be smaller than in the simulator, because it takes real time.
    """

    seeds: int = Field(default=0, ge=0)
    """Number of seeds (0: `JUDGED_SEEDS` if a claim needs a confidence interval, otherwise one seed)."""
    quick: Shorter = Shorter()
    """The form on real stacks with `--quick`. Its fields replace `seeds`, `duration` and `keep` of this
    form."""
    simulated_seeds: int = Field(default=10, ge=1)
    """Number of seeds of the simulation that is compared with the real stacks."""
    set: dict[str, Any] = {}
    """Keys of the scenario (dotted) that differ from the experiment, and their values.

    They apply on real stacks, and in the simulation that is compared with them.
    """
    omit: list[str] = []
    """Keys of the scenario that are left out on real stacks, e.g. jitter, because real hosts have it
    anyway."""
    left_out: str = ""
    """The reason why this form is smaller than the experiment in the simulator. The report prints the
    reason."""
    never: str = ""
    """The reason why the experiment does not run on real stacks (empty: it runs on real stacks). If a reason
    is given, the other fields have no effect."""
    explained: list[str] = []
    """Explanations of large differences between simulation and kernel, for the report."""


class FreeInput(Shorter):
    """An input that the paper does not give. Its value is therefore our choice.

    Claims are also judged with the other values that the paper allows. If the verdict differs between values,
    the claim cannot be judged. The input is a key of the scenario, a factor of the sweep that claims name, or
    an argument of measures. If it is a key, the experiment also runs with each of the other values.
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
    """Maximum number of seeds of the additional runs. The fields `keep` and `duration` apply to these runs,
    too."""
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
    """A model from the paper. Its solutions are used as runs (`narrows.studies.computed`)."""

    model: str
    args: dict[str, Any] = {}


class Transfers(_Table):
    """An experiment of iperf3 transfers between two hosts, which `--as-published` performs on real stacks."""

    algorithms: list[str] = Field(min_length=1)
    """Congestion control algorithms. There are `repetitions` transfers with each algorithm."""
    seconds: int = Field(default=10, ge=1)
    """Duration of a transfer."""
    repetitions: int = Field(default=JUDGED_SEEDS, ge=1)
    """Number of transfers with each algorithm. It can be larger than in the paper, because claims need a
    confidence interval."""
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
    """Duration of a transfer with `--quick`. With `--quick`, there is one repetition."""


class Attempts(_Table):
    """An experiment of pings between all hosts of a switch, which `--as-published` performs."""

    hosts: list[Annotated[int, Field(ge=2, le=MAX_HOSTS)]] = Field(min_length=1)
    """Numbers of hosts. There are `repetitions` attempts with each number of hosts."""
    count: int = Field(default=20, ge=1)
    """Number of pings that each host sends in an attempt."""
    interval_ms: int = Field(default=50, ge=1)
    """Time between two pings of a host."""
    repetitions: int = Field(default=10, ge=1)
    """Number of attempts with each number of hosts."""


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
    """A CSV file with a table of the paper, given instead of `scenario`. Each row of the table is used as a
    run, and nothing is simulated."""
    computed: Computed | None = None
    """A model. Its solutions are used as runs. If there is also a scenario, each run has the factor `by` with
    the value `simulation` or `model`."""
    iperf3: Transfers | None = None
    """Transfers with iperf3, given instead of `scenario`. Only `--as-published` performs them."""
    pings: Attempts | None = None
    """Attempts with pings between hosts, given instead of `scenario`. Only `--as-published` performs them."""
    factors: dict[str, str] = {}
    """The key in the sweep (`case` or a dotted key) of each factor whose name differs from its key."""
    recorded: Recorded | None = None
    """Recorded traces to add to the sweep."""
    free: list[FreeInput] = []
    """Inputs that the paper does not give."""
    quick: Shorter = Shorter()
    """The experiment's form with `--quick`."""
    kernel: OnKernel = OnKernel(never="the study does not mention it")
    """The experiment's form on real stacks (`--on kernel` or `--on vm`)."""

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
                raise Expected(f"a free input other than {item.id!r}, which the experiment already varies")
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
    """A figure: its kind (a name in the report's registry), the runs that it shows, and its caption."""

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
    """The experiment's free input whose values are a factor of the figure (empty: none)."""


class TableColumn(_Table):
    """A column of a paper's table, with the paper's values next to the measured values."""

    title: str
    measure: str
    args: dict[str, Any] = {}
    where: Where = {}
    paper: dict[str, float | str] = {}
    """The paper's value in each row, by the row's name."""
    printed: str = ""
    """The column of the CSV file with the paper's values, given instead of `paper`."""

    @model_validator(mode="after")
    def _one_source(self) -> TableColumn:
        if self.paper and self.printed:
            raise Expected("at most one of paper and printed")
        return self


class TableSpec(_Table):
    """A table of the paper, with our values next to the paper's values."""

    id: str
    experiment: str
    title: str
    caption: str = ""
    rows: str = "algorithm"
    """The factor whose values are the rows."""
    where: Where = {}
    columns: list[TableColumn] = Field(min_length=1)
    printed: str = ""
    """The experiment with the paper's CSV file. It is required if columns have `printed`."""


class OverviewPanel(_Table):
    """A panel of a study's overview. It shows one column of the tables of all experiments."""

    column: str
    """Title of the column. Experiments are left out if their tables do not have this column."""
    title: str
    scale: list[float] = Field(min_length=3, max_length=3)
    """Three values, whose shades mean bad, neutral and good."""
    log: bool = False
    """Whether shades follow the logarithm of the value."""
    percent: bool = False
    """Whether values, which are fractions, are written in percent."""


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

    above, below: the whole confidence interval over seeds must be above or below this limit (MET-91). If two
    sides are compared, the interval is that of the paired difference. about: the whole interval must be
    between `about` - `within` and `about` + `within`. With these three fields, the claim cannot be judged if
    the interval contains a limit. at_least, at_most: the value of every run must comply with this limit.

    against: a second limit, for claims with words such as "gently", for which the paper gives no number. With
        `above`, the claim does not hold if the whole interval is below `against`. With `below`, it does not
        hold if the whole interval is above `against`. Between these two outcomes, the claim cannot be judged.
        The verdict therefore does not depend on a single limit of our choice.
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
        """The confidence interval, as sentences call it."""
        return f"{100 * self.confidence:.6g} % interval"

    @property
    def needs_interval(self) -> bool:
        """Whether the verdict depends on a confidence interval. If so, a single run has no verdict."""
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
            raise Expected("an `against` that is less than `above` or more than `below`")
        return self


class Claim(_Table):
    """A statement that can be true or false, and its test."""

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
    """Groups of values of a factor in the paper's order, given instead of `b`. The group with the largest
    measurements is the first.

    There is a case for each pair of values from different groups. Values in the same group are not compared.
    """
    order_of: str = "algorithm"
    """The factor of `order`."""
    compare: Literal["value", "difference", "ratio", "gain"] = "value"
    """The number that is computed from `a` and `b` for each seed. `gain` is 100 (a/b - 1) percent (MET-7)."""
    across: Literal["every", "any"] = "every"
    """If free factors lead to several cases: whether the claim must hold in every case, or in at least
    one."""
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
    """The claim after a change of a factor's value from old to new, in each side that has the old value."""

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
    """An algorithm with two forms: as the paper prints it, and repaired.

    Claims refer to one of the forms by its name. Each claim of the paper is also judged on the other form.
    """

    repaired: str
    """Name of the repaired form, which is a value of `factor`."""
    printed: str
    """Name of the paper's form, which is a value of `factor`."""
    claims: Literal["repaired", "printed"] = "repaired"
    """The form to which claims refer. The report counts the verdicts on this form first."""
    label: str = "as printed"
    """Label of the paper's form."""
    factor: str = "algorithm"

    @property
    def forms(self) -> tuple[str, str]:
        """Both forms. The form to which claims refer is the first."""
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
    """Sentences about gaps and contradictions of the paper, and how we resolve them."""
    readings: list[Reading] = []
    """Algorithms with two forms. The labels of the forms are the same for all algorithms
    (`Reading.words`)."""
    kernel_set: dict[str, Any] = {}
    """Keys of the scenario (dotted) that all experiments change on real stacks, and their values.

    The keys of an experiment's `kernel.set` are set after them.
    """
    experiments: list[Experiment]
    figures: list[FigureSpec] = []
    tables: list[TableSpec] = []
    """Tables of measures by algorithm, e.g. the paper's tables."""
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

        The function raises Narrows' own errors, because pydantic's errors would not contain the key.
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
            # All algorithms must have the same labels, because the report has only one pair of labels.
            _known(reading.claims, [self.readings[0].claims], f"readings.{i}.claims")
            _known(reading.label, [self.readings[0].label], f"readings.{i}.label")
        for experiment in self.experiments:
            _unique(experiment.free, f"experiments.{experiment.id}.free")
            for item in experiment.free:
                self._check_named(experiment, item)
        return self

    def _check_named(self, experiment: Experiment, item: FreeInput) -> None:
        """If a free input is an argument or a factor, check that a claim names it with our value."""
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
