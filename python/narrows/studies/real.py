"""Runs a study on real stacks. A shortened form of each experiment is simulated and run in real time.

Runs in real time are slow, so the study defines the shortened form of each experiment (`OnKernel`). The
simulation also runs the shortened form, so that only the backend differs.

OUT/sim/<experiment>      tables of the simulation
OUT/<backend>/<experiment>  tables of the runs on real stacks: kernel or vm
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrows import sweep
from narrows.backends import Backend
from narrows.errors import NarrowsError, ScenarioError
from narrows.results.by_run import read_runs
from narrows.results.compare import compare
from narrows.results.results import SIMULATED, Results, is_finished, left_by
from narrows.scenario.load import expand
from narrows.scenario.model import Scenario
from narrows.studies.choices import judge_choices
from narrows.studies.computed import BY, SIMULATION, with_computed
from narrows.studies.judge import Finding
from narrows.studies.load import checked, read_scenario, scenario_text
from narrows.studies.model import Claim, Experiment, Study, instead
from narrows.studies.runner import (
    Outcome,
    Real,
    Say,
    amount,
    at_a_time,
    chosen,
    judge_claims,
    minutes,
    shorten,
    take_without_runs,
)

OVERHEAD_S = 2.5
"""Estimated time to set up and remove the network of a run."""
QUICK_SEEDS = 3
"""Largest number of seeds of a quick simulation."""


@dataclass(frozen=True)
class Pair:
    """An experiment on both sides: in the simulator and on real stacks."""

    experiment: Experiment
    simulated: Scenario
    real: Scenario | None
    """The scenario on real stacks (None: real stacks cannot run any part of it)."""
    left_out: list[str]
    """Sentences about the parts that do not run on real stacks, with reasons."""

    @property
    def seconds(self) -> float:
        """Estimated time of the runs on real stacks, in seconds."""
        if self.real is None:
            return 0.0
        return len(expand(self.real)) * (self.real.duration / 1e9 + OVERHEAD_S)


def run_on_both(
    study: Study,
    out: Path,
    real: Backend,
    *,
    quick: bool = False,
    only: Iterable[str] = (),
    seeds: int | None = None,
    jobs: int | None = None,
    reuse: bool = False,
    simulator: Backend | None = None,
    say: Say = lambda _: None,
) -> Outcome:
    """Run a study's experiments on real stacks and in the simulator, and judge its claims on both.

    Args:
        study: the study.
        out: folder of results and report.
        real: the backend in real time.
        quick: whether to run the form for `--quick`.
        only: ids of experiments (empty: all).
        seeds: number of seeds on real stacks (None: the study's). The simulation has at least as many seeds.
        jobs: number of parallel runs. The backend limits the number of parallel runs on real stacks.
        reuse: whether to use the tables of finished experiments of an earlier run with the same scenario.
        simulator: the simulator (None: the native one).
        say: called with each line about the progress.
    """
    experiments = chosen(study, only)
    pairs = [plan(study, experiment, quick, real, seeds) for experiment in experiments if experiment.scenario]
    if not any(pair.real for pair in pairs):
        # Write nothing, because a report without runs would replace the report of an earlier call.
        raise NarrowsError(f"--on {real.name}: {_none_runs(experiments, pairs)}")
    stacks = Real(kernel=str(real.facts().get("kernel", "unknown")), backend=real.name)
    outcome = Outcome(study, quick, {}, [], real=stacks)
    for experiment in experiments:
        if not experiment.scenario:
            take_without_runs(study, experiment, outcome)
    ahead = [pair for pair in pairs if pair.real and not _kept(pair.real, _place(out, real, pair), reuse)]
    total = sum(pair.seconds for pair in ahead)
    beside = [
        pair.simulated
        for pair in pairs
        if pair.real and not _kept(pair.simulated, out / SIMULATED / pair.experiment.id, reuse)
    ]
    say(_work_ahead(ahead, beside, stacks, at_a_time(jobs, real)))
    for pair in pairs:
        identity = pair.experiment.id
        stacks.left_out[identity] = list(pair.left_out)
        if pair.real is None:
            say(f"{identity}: left out: {' '.join(pair.left_out)}")
            continue
        outcome.scenarios[identity] = scenario_text(study.folder, pair.experiment, real=study.kernel_set)
        simulated = _results(pair.simulated, out / SIMULATED / identity, simulator, jobs, reuse, _quiet)
        runs = read_runs(simulated, pair.experiment.factors)
        outcome.runs[identity] = with_computed(pair.experiment, runs)
        outcome.version = str(simulated.metadata.get("narrows", "unknown"))
        outcome.add_cost(simulated, out / SIMULATED / identity)
        found = _in_real_time(pair, _place(out, real, pair), real, jobs, reuse, total, say, stacks)
        total -= pair.seconds if pair in ahead else 0.0
        if found is not None:
            measured = read_runs(found, pair.experiment.factors)
            stacks.runs[identity] = with_computed(pair.experiment, measured, real.name)
            stacks.comparisons[identity] = compare(simulated, found)
    judge_claims(outcome)
    # On real stacks, free inputs have only our values. The text of the verdict says so.
    stacks.findings = [_judged(finding.claim, study, stacks) for finding in outcome.findings]
    return outcome


def _judged(claim: Claim, study: Study, stacks: Real) -> Finding:
    """The verdict on a claim, judged by the runs on real stacks."""
    asked = instead(claim, BY, SIMULATION, stacks.backend)
    return judge_choices(asked, study.experiment(claim.experiment), stacks.runs, {})


def _none_runs(experiments: list[Experiment], pairs: list[Pair]) -> str:
    """Reasons why none of these experiments runs on real stacks."""
    reasons = [f"{pair.experiment.id} is not run on real stacks: {' '.join(pair.left_out)}" for pair in pairs]
    reasons += [f"{e.id} is a table that the paper prints" for e in experiments if e.printed]
    reasons += [f"{e.id} is computed" for e in experiments if not e.file]
    return "; ".join(reason.rstrip(".") for reason in reasons)


def _in_real_time(
    pair: Pair,
    folder: Path,
    backend: Backend,
    jobs: int | None,
    reuse: bool,
    left_s: float,
    say: Say,
    stacks: Real,
) -> Results | None:
    """Run an experiment in real time.

    If a run fails, add the reason to `left_out`, and return the finished runs.
    """
    assert pair.real is not None
    progress = _progress(pair.experiment.id, stacks.where, left_s, pair.real.duration / 1e9 + OVERHEAD_S, say)
    try:
        return _results(pair.real, folder, backend, jobs, reuse, progress)
    except NarrowsError as error:
        # If an experiment fails, the results of the experiments before it must be kept.
        say(f"{pair.experiment.id}: {error}")
        stacks.left_out[pair.experiment.id].append(f"The missing runs failed: {error}")
        return left_by(error)


def _results(
    scenario: Scenario,
    folder: Path,
    backend: Backend | None,
    jobs: int | None,
    reuse: bool,
    progress: sweep.Progress,
) -> Results:
    return _kept(scenario, folder, reuse) or sweep.run(
        scenario, out=folder, jobs=jobs, backend=backend, formats=("parquet",), progress=progress
    )


def _kept(scenario: Scenario, folder: Path, reuse: bool) -> Results | None:
    """The results of an earlier run, if it finished and had the same scenario."""
    if not reuse or not is_finished(folder):
        return None
    earlier = Results.read(folder)
    return earlier if earlier.metadata.get("scenario") == scenario.facts() else None


def _place(out: Path, real: Backend, pair: Pair) -> Path:
    return out / real.name / pair.experiment.id


def _quiet(done: int, total: int) -> None:
    """Prints no progress, because the simulations are short."""


def _progress(name: str, where: str, left_s: float, each_s: float, say: Say) -> sweep.Progress:
    begun = time.monotonic()

    def tell(done: int, total: int) -> None:
        # The speed of a guest's virtual time is known only from finished runs.
        pace = (time.monotonic() - begun) / (done * each_s)
        rest = (left_s - done * each_s) * pace
        say(f"{name}: {done} of {total} runs {where}, about {minutes(rest)} left")

    return tell


def _work_ahead(ahead: list[Pair], beside: list[Scenario], stacks: Real, pace: str) -> str:
    """A line about the remaining runs. If their total time can be estimated, the line also has this time."""
    parts = []
    if ahead:
        is_virtual = stacks.backend == "vm"
        scenarios = [pair.real for pair in ahead if pair.real is not None]
        work = f"{stacks.where}: {amount(scenarios, 'virtual' if is_virtual else 'real')}, {pace}"
        total = minutes(sum(pair.seconds for pair in ahead))
        parts.append(work if is_virtual else f"{work}, about {total} with the set-up of each run")
    if beside:
        parts.append(f"for comparison: {amount(beside, 'simulated')}")
    return "; ".join(parts) or "all runs are kept from an earlier call"


def plan(
    study: Study, experiment: Experiment, quick: bool, backend: Backend, seeds: int | None = None
) -> Pair:
    """The scenarios of an experiment, for the simulator and for real stacks."""
    asked = experiment.kernel
    shorter = asked.quick if quick else asked
    data = read_scenario(study.folder, experiment, real=study.kernel_set)
    shorten(data, experiment, shorter)
    data["sweep"]["seeds"] = seeds or (shorter.seeds if quick else study.real_seeds(experiment))
    real = copy.deepcopy(data)
    compared = min(asked.simulated_seeds, QUICK_SEEDS) if quick else asked.simulated_seeds
    data["sweep"]["seeds"] = max(compared, seeds or 0)
    simulated = checked(study, experiment, data).beside_real()
    if asked.never:
        return Pair(experiment, simulated, None, [sentence(asked.never)])
    for key in asked.omit:
        omit(real, key)
    left_out = [sentence(asked.left_out)] if asked.left_out else []
    possible, refused = _possible(study, experiment, real, backend)
    left_out += refused
    return Pair(experiment, simulated, possible, left_out)


def _possible(
    study: Study, experiment: Experiment, data: dict[str, Any], backend: Backend
) -> tuple[Scenario | None, list[str]]:
    """The scenario without the cases that the backend rejects, and the reasons."""
    scenario = checked(study, experiment, data)
    resolver = sweep.Resolver(backend)
    reasons: dict[str, str] = {}
    for run in expand(scenario, seeds=1):
        case = str(run.factors.get("case", ""))
        try:
            if case not in reasons:
                backend.check(resolver(run.scenario))
        except ScenarioError as error:
            reasons[case] = f"{error.key}: {error.message}" if error.key else error.message
    if not reasons:
        return scenario, []
    cases = [case for case in data["sweep"].get("case", []) if case["name"] not in reasons]
    said = [sentence(f"Without {case}: {why}" if case else why) for case, why in reasons.items()]
    if not cases:
        return None, said
    return checked(study, experiment, {**data, "sweep": {**data["sweep"], "case": cases}}), said


def omit(data: dict[str, Any], key: str) -> None:
    """Remove a dotted key from a scenario's tables, in place.

    Each part of the key is the name of a table or an index in a list.

    Raises:
        NarrowsError: if the key does not exist.
    """
    *parts, last = key.split(".")
    place: Any = data
    try:
        for part in parts:
            place = place[int(part)] if isinstance(place, list) else place[part]
        del place[last]
    except (KeyError, IndexError, ValueError, TypeError):
        raise NarrowsError(f"found no {key!r} in the scenario, expected one to omit") from None


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")
