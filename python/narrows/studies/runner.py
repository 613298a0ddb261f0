"""Runs a study's experiments, and reads their tables as runs."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from narrows import sweep
from narrows.backends import Backend
from narrows.data.folder import data_folder
from narrows.errors import NarrowsError, ScenarioError, choice, found
from narrows.executors import Executor
from narrows.results.by_run import read_runs
from narrows.results.compare import Comparison
from narrows.results.factors import Factor, factor, same
from narrows.results.results import Results, is_finished
from narrows.results.runs import Runs
from narrows.scenario.load import expand, override
from narrows.scenario.model import Scenario
from narrows.studies.choices import judge_choices
from narrows.studies.computed import with_computed
from narrows.studies.judge import Finding
from narrows.studies.load import checked, read_scenario, scenario_text
from narrows.studies.model import Claim, Experiment, FreeInput, Shorter, Study
from narrows.studies.printed import printed_rows
from narrows.studies.readings import second_reading

Say = Callable[[str], None]


@dataclass
class Real:
    """The part of an outcome that comes from real stacks."""

    runs: dict[str, Runs] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    """Comparison of the simulation (A) with the real stacks (B) for each experiment."""
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """For each experiment, sentences that say which parts were not run, and why."""
    kernel: str = "unknown"
    """Release of the kernel."""
    backend: str = "kernel"
    """Name of the backend: kernel or vm."""

    @property
    def side(self) -> str:
        """The word for the real stacks in headings."""
        return "guest" if self.backend == "vm" else "kernel"

    @property
    def where(self) -> str:
        """The words of a sentence that say where the runs took place."""
        return "in the guest" if self.backend == "vm" else "on the kernel"


@dataclass
class Outcome:
    """The outcome of a study, with all data of the report."""

    study: Study
    quick: bool
    runs: dict[str, Runs]
    findings: list[Finding]
    scenarios: dict[str, str] = field(default_factory=dict)
    """Text of the scenario file of each experiment."""
    notes: list[str] = field(default_factory=list)
    """Notes for the reader, e.g. that recorded traces were missing."""
    version: str = "unknown"
    wall_s: float = 0.0
    """Simulation time, summed over threads."""
    events: int = 0
    real: Real | None = None
    """The outcome on real stacks, if the study ran on them and in the simulator."""
    on: str = "sim"
    """Where `runs` took place: in the simulator, or on the backend that `--as-published` uses."""
    kernel: str = ""
    """Release of the kernel with `--as-published`."""
    second: list[Finding] = field(default_factory=list)
    """Findings on the second reading, for claims that name an algorithm with two readings."""
    varied: dict[str, dict[str, Runs]] = field(default_factory=dict)
    """Additional runs of each experiment, by free input."""

    def add_cost(self, results: Results, folder: Path) -> None:
        """Add the time and the events of the runs in a folder."""
        self.wall_s += wall_seconds(folder)
        self.events += int(np.nansum(numbers(results.runs, "events")))


@dataclass(frozen=True)
class _Sweep:
    """An experiment's own runs, or its additional runs with other values of a free input."""

    experiment: Experiment
    item: FreeInput | None
    """The free input (None: the experiment's own runs)."""
    folder: Path
    scenario: Scenario | None
    """The scenario (None: the tables in `folder` are used)."""
    notes: list[str]

    @property
    def name(self) -> str:
        """The runs in words."""
        return (
            f"{self.experiment.id} with other values of {self.item.id}" if self.item else self.experiment.id
        )

    @property
    def factors(self) -> dict[str, str]:
        """For each factor, its key in the sweep."""
        return self.experiment.factors | ({self.item.id: self.item.key} if self.item else {})


def run_study(
    study: Study,
    out: Path,
    *,
    quick: bool = False,
    only: Iterable[str] = (),
    seeds: int | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    reuse: bool = False,
    backend: Backend | None = None,
    data: Path | None = None,
    say: Say = lambda _: None,
) -> Outcome:
    """Run the experiments of a study into `out`/results, and judge its claims.

    Args:
        study: the study.
        out: folder of the study's results and report.
        quick: whether to run fewer seeds, shorter runs and fewer points, as the study defines.
        only: ids of experiments (empty: all).
        seeds: number of seeds (None: the study's). This number also limits the seeds of additional runs.
        jobs: number of parallel runs (None: one per core).
        executor: where the simulations run (None: on this machine).
        reuse: whether to use the tables of an earlier run in `out` if they have the requested number of
            seeds.
        backend: the backend (None: the simulator).
        data: the data folder of recorded traces (None: see `narrows.data.folder`).
        say: called with each line about the progress.
    """
    outcome = Outcome(study, quick, {}, [])
    # Prepare all experiments before the first one runs, so that an invalid file is reported before any run.
    experiments = chosen(study, only)
    planned = _planned(study, experiments, out / "results", quick, seeds, reuse, data)
    ahead = [item.scenario for item in planned if item.scenario is not None]
    if ahead:
        where = at_a_time(jobs, backend) if executor is None else f"by executor {executor.name}"
        say(f"{amount(ahead, 'simulated')}, {where}")
    for experiment in experiments:
        if not experiment.scenario:
            take_without_runs(study, experiment, outcome)
        for part in planned:
            if part.experiment is experiment:
                _take(part, outcome, jobs, executor, backend, say)
    judge_claims(outcome)
    return outcome


def _planned(
    study: Study,
    experiments: Iterable[Experiment],
    results: Path,
    quick: bool,
    seeds: int | None,
    reuse: bool,
    data: Path | None,
) -> list[_Sweep]:
    """The runs of each experiment, followed by its additional runs."""
    planned = []
    for experiment in experiments:
        if not experiment.scenario:
            continue
        folder = results / experiment.id
        if reuse and _has_seeds(folder, seeds):
            planned.append(_Sweep(experiment, None, folder, None, []))
        else:
            scenario, notes = prepare(study, experiment, quick, data, seeds)
            planned.append(_Sweep(experiment, None, folder, scenario, notes))
        for item in experiment.free:
            if not item.key or (quick and not item.quick):
                continue
            folder = results / f"{experiment.id}-{item.id}"
            if reuse and _has_seeds(folder, None if seeds is None else min(seeds, item.seeds)):
                planned.append(_Sweep(experiment, item, folder, None, []))
            else:
                other = with_other_values(study, experiment, item, quick, seeds)
                planned.append(_Sweep(experiment, item, folder, other, []))
    return planned


def _has_seeds(folder: Path, seeds: int | None) -> bool:
    """Whether an earlier run in the folder finished and has this number of seeds (None: any number)."""
    if not is_finished(folder):
        return False
    return seeds is None or len({run["seed"] for run in Results.read(folder).metadata["runs"]}) == seeds


def _take(
    planned: _Sweep,
    outcome: Outcome,
    jobs: int | None,
    executor: Executor | None,
    backend: Backend | None,
    say: Say,
) -> None:
    """Run a sweep, or read its tables, and add the runs to the outcome."""
    experiment, folder = planned.experiment, planned.folder
    if planned.scenario is None:
        results = Results.read(folder)
        say(f"{planned.name}: read {len(results.runs)} runs from {folder}")
    else:
        results = sweep.run(
            planned.scenario,
            out=folder,
            jobs=jobs,
            executor=executor,
            backend=backend,
            formats=("parquet",),
            progress=_progress(planned.name, say),
        )
    runs = read_runs(results, planned.factors)
    outcome.add_cost(results, folder)
    if planned.item is not None:
        outcome.varied.setdefault(experiment.id, {})[planned.item.id] = runs
        return
    if planned.scenario is None:
        _recall(folder, outcome)
    else:
        outcome.notes += planned.notes
        _remember(folder, outcome.quick, planned.notes)
    outcome.runs[experiment.id] = with_computed(experiment, runs)
    outcome.version = str(results.metadata.get("narrows", "unknown"))
    outcome.scenarios[experiment.id] = scenario_text(outcome.study.folder, experiment)


def amount(scenarios: Iterable[Scenario], kind: str) -> str:
    """The number of runs and their total duration in words, e.g. `240 runs, 14,400 s of simulated time`.

    This function also checks each point of a sweep, so that an invalid point is reported before any run.
    """
    runs, seconds = 0, 0.0
    for scenario in scenarios:
        seeds = scenario.seeds
        points = expand(scenario, 1)
        runs += seeds * len(points)
        seconds += seeds * sum(point.scenario.duration for point in points) / 1e9
    return f"{runs:,} run{'s' * (runs != 1)}, {seconds:,.0f} s of {kind} time"


def at_a_time(jobs: int | None, backend: Backend | None) -> str:
    """The number of concurrent runs in words."""
    return f"{sweep.most_jobs(jobs, backend)} at a time"


def minutes(seconds: float) -> str:
    """An approximate time in words."""
    return f"{max(0.0, seconds):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def judge_claims(outcome: Outcome) -> None:
    """Judge the claims of the experiments that have runs, on both readings of the algorithms."""
    study = outcome.study
    claims = [claim for claim in study.claims if claim.experiment in outcome.runs]
    seconds = [other for claim in claims if (other := second_reading(claim, study.readings)) is not None]

    def judged(claim: Claim) -> Finding:
        varied = outcome.varied.get(claim.experiment, {})
        return judge_choices(claim, study.experiment(claim.experiment), outcome.runs, varied)

    outcome.findings = [judged(claim) for claim in claims]
    outcome.second = [finding for claim in seconds if (finding := judged(claim)).cases]


def take_without_runs(study: Study, experiment: Experiment, outcome: Outcome) -> None:
    """Add the runs that need no simulation: rows of a table of the paper, or solutions of a model."""
    if not experiment.printed:
        outcome.runs[experiment.id] = with_computed(experiment, Runs([]))
        return
    path = study.folder / experiment.printed
    outcome.scenarios[experiment.id] = path.read_text(encoding="utf-8")
    outcome.runs[experiment.id] = printed_rows(path)


def chosen(study: Study, only: Iterable[str]) -> list[Experiment]:
    """The experiments with these ids, or all if there are no ids, in the study's order.

    Experiments that only `--as-published` runs are left out (`narrows.studies.published`).

    Raises:
        NarrowsError: if the study does not have one of these ids.
    """
    experiments = [experiment for experiment in study.experiments if not experiment.is_as_published]
    wanted, known = list(only), [experiment.id for experiment in experiments]
    for identity in wanted:
        if any(identity == other.id for other in study.experiments if other.is_as_published):
            raise NarrowsError(
                f"--only {identity}: it needs real stacks; add --as-published --on kernel or vm"
            )
        if identity not in known:
            raise NarrowsError(f"--only: {choice(identity, known)}")
    return [experiment for experiment in experiments if not wanted or experiment.id in wanted]


_REMEMBERED = "study.json"
"""File with the options of an experiment, stored with its tables for `--reuse`."""


def _remember(folder: Path, quick: bool, notes: list[str]) -> None:
    (folder / _REMEMBERED).write_text(json.dumps({"quick": quick, "notes": notes}) + "\n", encoding="utf-8")


def _recall(folder: Path, outcome: Outcome) -> None:
    try:
        kept = json.loads((folder / _REMEMBERED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    outcome.quick = outcome.quick or bool(kept.get("quick"))
    outcome.notes += [str(note) for note in kept.get("notes", [])]


def _progress(name: str, say: Say) -> sweep.Progress:
    begun = time.monotonic()

    def tell(done: int, total: int) -> None:
        if done == total:
            say(f"{name}: {done} of {total} runs")
        elif done * 10 // total > (done - 1) * 10 // total:
            left = (total - done) * (time.monotonic() - begun) / done
            say(f"{name}: {done} of {total} runs, about {minutes(left)} left")

    return tell


def prepare(
    study: Study,
    experiment: Experiment,
    quick: bool,
    folder: Path | None = None,
    seeds: int | None = None,
) -> tuple[Scenario, list[str]]:
    """An experiment's scenario (with recorded traces, and shortened if requested), and notes for the reader.

    Args:
        study: the study.
        experiment: one of its experiments.
        quick: whether to shorten it as the study defines.
        folder: the data folder of recorded traces (None: see `narrows.data.folder`).
        seeds: number of seeds (None: the study's).
    """
    check_choices(study, experiment)
    data = read_scenario(study.folder, experiment)
    notes = []
    if experiment.recorded is not None:
        found, note = _recorded(experiment, data, folder if folder is not None else data_folder())
        data["sweep"].setdefault("vary", {})[experiment.recorded.key] = found
        notes += [note] if note else []
    if quick:
        shorten(data, experiment, experiment.quick)
    if seeds is not None:
        data["sweep"]["seeds"] = seeds
    return checked(study, experiment, data), notes


def shorten(data: dict[str, Any], experiment: Experiment, shorter: Shorter) -> None:
    """Shorten a scenario, in place."""
    plan: dict[str, Any] = data["sweep"]
    plan["seeds"] = min(int(plan.get("seeds", 1)), shorter.seeds)
    data["duration"] = shorter.duration or data.get("duration", "30s")
    for name, kept in shorter.keep.items():
        _keep(plan, experiment.factors.get(name, name), kept if isinstance(kept, list) else [kept])


def check_choices(study: Study, experiment: Experiment) -> None:
    """Check the free inputs of an experiment: our values are in its scenario, and the other values are valid.

    Raises:
        NarrowsError: for the first input with a wrong value, in one line.
    """
    for item in experiment.free:
        if not item.key:
            continue
        place = f"{study.folder}: experiment {experiment.id}: free input {item.id}"
        data = read_scenario(study.folder, experiment)
        written = Scenario(**data)
        try:
            override(data, item.key, item.ours)
            if Scenario(**data) != written:
                raise NarrowsError(
                    f"{place}: ours: found {found(item.ours)}, expected the value of {item.key} in "
                    f"{experiment.scenario}"
                )
            expand(with_other_values(study, experiment, item, quick=False), 1)
        except ScenarioError as error:
            raise NarrowsError(f"{place}: {error}") from None


def with_other_values(
    study: Study, experiment: Experiment, item: FreeInput, quick: bool, seeds: int | None = None
) -> Scenario:
    """An experiment's scenario with the other values of a free input, and with at most `item.seeds` seeds."""
    data = read_scenario(study.folder, experiment)
    over = experiment.model_copy(update={"factors": {**experiment.factors, item.id: item.key}})
    data["sweep"].setdefault("vary", {})[item.key] = list(item.others)
    for shorter in (experiment.quick, item) if quick else (item,):
        shorten(data, over, shorter)
    if seeds is not None:
        data["sweep"]["seeds"] = min(seeds, item.seeds)
    return checked(study, experiment, data)


def _recorded(experiment: Experiment, data: dict[str, Any], folder: Path) -> tuple[list[Any], str]:
    """Values of the key for traces: the scenario's own value, then the recorded traces in the data folder."""
    assert experiment.recorded is not None
    own: Any = data
    for part in experiment.recorded.key.split("."):
        own = own[int(part)] if isinstance(own, list) else own[part]
    wanted = experiment.recorded.values
    found = [
        {**value, "file": str((folder / value["file"]).absolute())}
        for value in wanted
        if (folder / value["file"]).is_file()
    ]
    if len(found) == len(wanted):
        return [own, *found], ""
    missing = len(wanted) - len(found)
    instead = "" if found else "; the synthetic trace is used instead"
    note = (
        f"{experiment.id}: {missing} of {len(wanted)} recorded traces are not in the data folder{instead}. "
        "`narrows data` lists them."
    )
    return [own, *found], note


def _keep(plan: dict[str, Any], key: str, kept: list[Factor]) -> None:
    """Keep only these values of a factor in a sweep."""
    if key == "case":
        plan["case"] = [case for case in plan["case"] if case["name"] in kept]
    elif key in plan.get("vary", {}):
        values = plan["vary"][key]
        plan["vary"][key] = [value for value in values if any(same(factor(value), option) for option in kept)]


def numbers(table: pa.Table, name: str) -> Any:
    """The values of a numeric column (empty: the table does not have this column)."""
    return table[name].to_numpy(zero_copy_only=False) if name in table.column_names else np.empty(0)


def wall_seconds(folder: Path) -> float:
    """Total time of the runs in a folder of results."""
    try:
        with (folder / "timing.csv").open(encoding="utf-8", newline="") as file:
            return sum(float(row["wall_s"]) for row in csv.DictReader(file))
    except (OSError, KeyError, ValueError):
        return 0.0
