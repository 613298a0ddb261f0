"""Runs a validation: simulates each cell, and runs it on real stacks if there is no earlier result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from narrows import congestion, sweep
from narrows.backends import Backend
from narrows.backends.kernel import soundness
from narrows.errors import NarrowsError
from narrows.executors import Executor
from narrows.results.results import SIMULATED, Results
from narrows.signals import undisturbed
from narrows.validate import kept, measures
from narrows.validate.evidence import Source
from narrows.validate.grid import Cell
from narrows.validate.kept import Kept
from narrows.validate.measures import Side
from narrows.validate.place import Place


def linux() -> tuple[str, ...]:
    """The names of the congestion control algorithms that Linux has."""
    return tuple(sorted(name for name, row in congestion.catalogue().items() if row.linux is not None))


_NAP_SECONDS = 0.2
_SAYS_EVERY_SECONDS = 15.0

Say = Callable[[str], None]
Other = Callable[[str, Cell, float], dict[str, Side]]


@dataclass(frozen=True)
class Ask:
    """The algorithms and networks to validate."""

    out: Path
    algorithms: tuple[str, ...]
    cells: tuple[Cell, ...]
    repetitions: int = 3
    """Number of runs of a cell on real stacks."""
    seeds: int = 25
    """Number of simulated runs of a cell. If real and simulated runs lose the same packets, this number does
    not apply, because the simulated runs have the seeds of the real runs."""
    duration: str = "30s"


@dataclass(frozen=True)
class Finding:
    """A tested flow of a cell, on both sides."""

    algorithm: str
    cell: Cell
    flow: str
    model: Side
    real: Side
    unsound: int = 0
    """Number of disturbed runs on real stacks, which are not in `real`."""
    other: Side | None = None
    """The results of ns-3, if requested and if it has the algorithm."""

    @cached_property
    def errors(self) -> dict[str, float]:
        """Errors by figure; see `measures.error`. The value of `window` is `measures.window_distance`."""
        return _errors(self.model, self.real)

    @cached_property
    def other_errors(self) -> dict[str, float]:
        """The errors of ns-3; NaN if ns-3 did not run."""
        return _errors(self.other or Side({}), self.real)

    @property
    def name(self) -> str:
        """Algorithm, cell and flow as one name."""
        return f"{self.algorithm}/{self.cell.name}/{self.flow}"


def _errors(model: Side, real: Side) -> dict[str, float]:
    found = {figure: measures.error(model, real, figure) for figure in measures.FIGURES}
    return found | {"window": measures.window_distance(model, real)}


@dataclass
class Outcome:
    """The results of a validation."""

    ask: Ask
    backend: str
    """Backend of the real stacks."""
    findings: list[Finding] = field(default_factory=list)
    marked: list[Finding] = field(default_factory=list)
    """Runs of cells in which every run was disturbed. The page shows them, but its medians exclude them."""
    absent: list[str] = field(default_factory=list)
    """Names of the pairs of algorithm and cell that have no run on real stacks."""
    failed: dict[str, str] = field(default_factory=dict)
    """The reason why a cell has no figures, by the name of the pair of algorithm and cell."""
    unsound: dict[str, int] = field(default_factory=dict)
    """Number of disturbed runs on real stacks that are left out, by the name of the pair."""
    kernels: list[str] = field(default_factory=list)
    """Versions of the measured kernels."""
    dates: list[str] = field(default_factory=list)
    """First and last day of the measurements, ISO 8601."""
    recorded: bool = False
    """Whether the real runs come from a recording."""


def available(real: Backend, simulator: Backend) -> tuple[str, ...]:
    """The names of Linux's algorithms that both backends have."""
    names = [{name for name, _ in backend.congestion_controllers()} for backend in (real, simulator)]
    return tuple(name for name in linux() if name in names[0] and name in names[1])


def run(
    ask: Ask,
    real: Backend | None,
    backend: str,
    *,
    source: Source | None = None,
    simulator: Backend | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    other: Other | None = None,
    say: Say = lambda _: None,
) -> Outcome:
    """Run the missing cells on real stacks, simulate, and compare.

    Args:
        ask: the algorithms and cells.
        real: backend of the real stacks (None: only compare earlier runs).
        backend: name of that backend, and of the folder with its results.
        source: source of the real runs (default: the folder).
        simulator: the simulator (default: the native one).
        jobs: number of concurrent simulations.
        executor: where simulations run (None: on this machine).
        other: a function of algorithm, cell and start of the measurement (s) that runs another simulator.
        say: called with lines about the progress.
    """
    outcome = Outcome(ask, backend, recorded=source is not None)
    wanted = places(ask)
    if real is not None:
        with kept.alone(ask.out):
            outcome.failed = _measure(ask, real, Kept(ask.out, backend), wanted, say)
    source = source or Kept(ask.out, backend)
    days: set[str] = set()
    begun = time.monotonic()
    for number, place in enumerate(wanted, start=1):
        if place.name not in outcome.failed:
            days |= _compare(outcome, place, source, simulator, jobs, executor, other)
        if time.monotonic() - begun > _SAYS_EVERY_SECONDS:
            begun = time.monotonic()
            say(f"{number} of {len(wanted)} cells compared")
    outcome.dates = _ends(days)
    return outcome


def places(ask: Ask) -> list[Place]:
    """The places of all requested cells and algorithms."""
    return [Place(ask.out, name, cell, ask.duration) for cell in ask.cells for name in ask.algorithms]


def _compare(
    outcome: Outcome,
    place: Place,
    source: Source,
    simulator: Backend | None,
    jobs: int | None,
    executor: Executor | None,
    other: Other | None,
) -> frozenset[str]:
    """Add the findings of a cell. Return the days of its measurements (none if no run was sound)."""
    ask, cell = outcome.ask, place.cell
    found = source.evidence(place)
    if found is None:
        outcome.absent.append(place.name)
        return frozenset()
    outcome.kernels = sorted({*outcome.kernels, *found.kernels})
    if found.unsound:
        outcome.unsound[place.name] = found.unsound
    into, reals = outcome.findings, found.sides
    if not reals:
        outcome.failed[place.name] = found.verdict
        into, reals = outcome.marked, found.disturbed
    # If real and simulated runs lose different packets, results vary between runs, so more runs are
    # simulated.
    simulated = sweep.run(
        place.scenario(max(found.seeds) if cell.same_losses else ask.seeds),
        out=place.folder(SIMULATED),
        jobs=jobs,
        executor=executor,
        backend=simulator,
        formats=("parquet",),
    )
    models = measures.sides(simulated)
    others = other(place.algorithm, cell, simulated.warmup_s) if other is not None else {}
    for flow in cell.tested:
        if flow not in reals:
            continue
        model, real = models[flow], reals[flow]
        if cell.same_losses:
            model = model.of(real.seeds)
        into.append(Finding(place.algorithm, cell, flow, model, real, found.unsound, others.get(flow)))
    return found.days if into is outcome.findings else frozenset()


def _ends(days: Iterable[str]) -> list[str]:
    """The first and the last of these days."""
    each = sorted(days)
    return each[:1] + each[1:][-1:]


def _measure(ask: Ask, real: Backend, into: Kept, wanted: Sequence[Place], say: Say) -> dict[str, str]:
    """Run the missing cells on real stacks, and return the reasons of failures."""
    kernel = str(real.facts().get("kernel", ""))
    there = {place.name: into.sound(place, kernel) for place in wanted}
    ahead = [place for place in wanted if there[place.name] < ask.repetitions]
    runs = sum(ask.repetitions - there[place.name] for place in ahead)
    say(f"{len(wanted)} cells, {len(wanted) - len(ahead)} of them from earlier runs; {runs} runs to do")
    failed: dict[str, str] = {}
    progress = _Progress(len(ahead), say)
    pool = ThreadPoolExecutor(max_workers=real.most_jobs or 1, thread_name_prefix="validate")
    waiting = iter(ahead)
    active: dict[Future[tuple[float, Results]], Place] = {}
    try:
        while True:
            for place in waiting:
                active[pool.submit(_one, ask, real, into, place, there[place.name])] = place
                if len(active) >= (real.most_jobs or 1):
                    break
            if not active:
                break
            done, _ = wait(active, _NAP_SECONDS, FIRST_COMPLETED)
            for future in done:
                place = active.pop(future)
                try:
                    seconds, measured = future.result()
                    kept.note(place, into.backend, kernel, ask.repetitions - there[place.name], seconds)
                    if not all(verdict["sound"] for verdict in measured.soundness.values()):
                        # Print the verdict immediately, because the user may want to stop other work on the
                        # machine.
                        say(f"{place.name}: {soundness.line(measured.soundness)}")
                except NarrowsError as error:
                    # If a cell fails, the results of the other cells must be kept. They may have taken hours.
                    failed[place.name] = str(error)
                    say(f"{place.name}: {error}")
                progress.tell(place.name)
    finally:
        with undisturbed():
            if active:
                real.cancel()
            pool.shutdown(wait=True, cancel_futures=True)
    return failed


def _one(ask: Ask, real: Backend, into: Kept, place: Place, first: int) -> tuple[float, Results]:
    begun = time.monotonic()
    into.drop(place, first)
    measured = sweep.run(
        place.scenario(ask.repetitions - first, first),
        out=place.folder(into.backend, first),
        jobs=1,
        backend=real,
        formats=("parquet",),
    )
    return time.monotonic() - begun, measured


class _Progress:
    """Prints the progress and the estimated remaining time."""

    def __init__(self, total: int, say: Say) -> None:
        self._total, self._say = total, say
        self._begun, self._done = time.monotonic(), 0

    def tell(self, name: str) -> None:
        self._done += 1
        rest = (time.monotonic() - self._begun) / self._done * (self._total - self._done)
        left = f", about {rest / 60:.0f} min left" if self._done < self._total else ""
        self._say(f"{self._done} of {self._total}: {name}{left}")
