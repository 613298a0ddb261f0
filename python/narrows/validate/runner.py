"""Running a validation: every cell simulated and on real stacks; what is finished is kept (`kept.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from narrows import sweep
from narrows.backends import Backend
from narrows.backends.kernel import soundness
from narrows.errors import NarrowsError
from narrows.results.results import Results
from narrows.signals import undisturbed
from narrows.validate import kept, measures
from narrows.validate.grid import Cell
from narrows.validate.kept import SIMULATED, Place
from narrows.validate.measures import Side

LINUX = (
    "bbr",
    "bic",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
)
"""The algorithms that Linux brings along."""

_NAP_SECONDS = 0.2
_SAYS_EVERY_SECONDS = 15.0

Say = Callable[[str], None]
Other = Callable[[str, Cell, float], dict[str, Side]]


@dataclass(frozen=True)
class Ask:
    """What to validate."""

    out: Path
    algorithms: tuple[str, ...]
    cells: tuple[Cell, ...]
    repetitions: int = 3
    """Runs of a cell on real stacks."""
    seeds: int = 25
    """Simulated runs of a cell. Where both sides lose the same packets: the real ones' seeds instead."""
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
    """Runs on real stacks that were disturbed, and are not in `real`."""
    other: Side | None = None
    """ns-3, where it has the algorithm and was asked."""

    @cached_property
    def errors(self) -> dict[str, float]:
        """By figure; see `measures.error`. `window` is the distance of the windows' distributions."""
        return _errors(self.model, self.real)

    @cached_property
    def other_errors(self) -> dict[str, float]:
        """Those of ns-3; NaN without it."""
        return _errors(self.other or Side({}), self.real)

    @property
    def name(self) -> str:
        """Algorithm, cell and flow in a word."""
        return f"{self.algorithm}/{self.cell.name}/{self.flow}"


def _errors(model: Side, real: Side) -> dict[str, float]:
    found = {figure: measures.error(model, real, figure) for figure in measures.FIGURES}
    return found | {"window": measures.window_distance(model, real)}


@dataclass
class Outcome:
    """What came of it."""

    ask: Ask
    backend: str
    findings: list[Finding] = field(default_factory=list)
    marked: list[Finding] = field(default_factory=list)
    """Of cells all of whose runs were disturbed, those runs: to be shown, not counted."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why a cell has no figures that count, by algorithm and cell."""
    unsound: dict[str, int] = field(default_factory=dict)
    """Runs on real stacks that were disturbed and are left out, by algorithm and cell."""
    kernels: list[str] = field(default_factory=list)
    """Versions that were measured."""
    dates: list[str] = field(default_factory=list)
    """Days of the measurements, ISO 8601, first and last."""


def available(real: Backend, simulator: Backend) -> tuple[str, ...]:
    """Linux's algorithms that both sides have."""
    names = [{name for name, _ in backend.congestion_controllers()} for backend in (real, simulator)]
    return tuple(name for name in LINUX if name in names[0] and name in names[1])


def run(
    ask: Ask,
    real: Backend | None,
    backend: str,
    *,
    simulator: Backend | None = None,
    jobs: int | None = None,
    other: Other | None = None,
    say: Say = lambda _: None,
) -> Outcome:
    """Run what is not there yet, simulate, and compare.

    Args:
        ask: what.
        real: runs on real stacks; None: only what is kept is compared.
        backend: name of the folder of its results.
        simulator: simulates; the native one if left out.
        jobs: simulations at a time.
        other: another simulator beside ours, by algorithm, cell and start of the measurement (s).
        say: told in a line what is going on.
    """
    outcome = Outcome(ask, backend)
    wanted = [Place(ask.out, name, cell, ask.duration) for cell in ask.cells for name in ask.algorithms]
    if real is not None:
        with kept.alone(ask.out):
            outcome.failed = _measure(ask, real, backend, wanted, say)
    begun = time.monotonic()
    for number, place in enumerate(wanted, start=1):
        if place.name not in outcome.failed:
            _compare(outcome, place, simulator, jobs, other)
        if time.monotonic() - begun > _SAYS_EVERY_SECONDS:
            begun = time.monotonic()
            say(f"{number} of {len(wanted)} cells compared")
    compared = {(finding.algorithm, finding.cell.name) for finding in outcome.findings}
    outcome.dates = kept.days(ask.out, backend, compared)
    return outcome


def _compare(
    outcome: Outcome, place: Place, simulator: Backend | None, jobs: int | None, other: Other | None
) -> None:
    ask, cell = outcome.ask, place.cell
    parts = list(place.parts(outcome.backend))
    if not parts:
        return
    outcome.kernels = sorted({*outcome.kernels, *(str(part.metadata.get("kernel", "")) for part in parts)})
    unsound = sum(not verdict["sound"] for part in parts for verdict in part.soundness.values())
    if unsound:
        outcome.unsound[place.name] = unsound
    reals = measures.together(measures.sides(part) for part in parts)
    into = outcome.findings
    if not reals:
        outcome.failed[place.name] = _disturbed(unsound, parts)
        into = outcome.marked
        reals = measures.together(measures.sides(part, disturbed=True) for part in parts)
    # Where losses differ a run is one of many that may happen, and the simulator's are more.
    real_runs = sum(len(part.runs) for part in parts)
    simulated = sweep.run(
        place.scenario(real_runs if cell.same_losses else ask.seeds),
        out=place.folder(SIMULATED),
        jobs=jobs,
        backend=simulator,
        formats=("parquet",),
    )
    models = measures.sides(simulated)
    others = other(place.algorithm, cell, float(simulated.metadata["warmup_s"])) if other is not None else {}
    for flow in cell.tested:
        if flow not in reals:
            continue
        model, real = models[flow], reals[flow]
        if cell.same_losses:
            model = model.of(real.seeds)
        into.append(Finding(place.algorithm, cell, flow, model, real, unsound, others.get(flow)))


def _disturbed(runs: int, parts: Sequence[Results]) -> str:
    """That all runs of a cell were, and by what."""
    verdicts = [verdict for part in parts for verdict in part.soundness.values()]
    reasons = dict.fromkeys(reason for verdict in verdicts for reason in verdict.get("reasons", []))
    which = f"all {runs} runs were" if runs > 1 else "its only run was"
    return f"{which} disturbed" + (f": {'; '.join(reasons)}" if reasons else "")


def _measure(ask: Ask, real: Backend, backend: str, wanted: Sequence[Place], say: Say) -> dict[str, str]:
    """Run on real stacks what is not kept; why what failed did."""
    kernel = str(real.facts().get("kernel", ""))
    there = {place.name: place.kept(backend, kernel) for place in wanted}
    ahead = [place for place in wanted if there[place.name] < ask.repetitions]
    runs = sum(ask.repetitions - there[place.name] for place in ahead)
    say(f"{len(wanted)} cells, {len(wanted) - len(ahead)} of them kept from before; {runs} runs ahead")
    failed: dict[str, str] = {}
    progress = _Progress(len(ahead), say)
    pool = ThreadPoolExecutor(max_workers=real.most_jobs or 1, thread_name_prefix="validate")
    waiting = iter(ahead)
    active: dict[Future[tuple[float, Results]], Place] = {}
    try:
        while True:
            for place in waiting:
                active[pool.submit(_one, ask, real, backend, place, there[place.name])] = place
                if len(active) >= (real.most_jobs or 1):
                    break
            if not active:
                break
            done, _ = wait(active, _NAP_SECONDS, FIRST_COMPLETED)
            for future in done:
                place = active.pop(future)
                try:
                    seconds, measured = future.result()
                    kept.note(place, backend, kernel, ask.repetitions - there[place.name], seconds)
                    if not all(verdict["sound"] for verdict in measured.soundness.values()):
                        # Now, as whoever waits may want to stop what else is at work on the machine.
                        say(f"{place.name}: {soundness.line(measured.soundness)}")
                except NarrowsError as error:
                    # One that breaks must not take hours of others along.
                    failed[place.name] = str(error)
                    say(f"{place.name}: {error}")
                progress.tell(place.name)
    finally:
        with undisturbed():
            if active:
                real.cancel()
            pool.shutdown(wait=True, cancel_futures=True)
    return failed


def _one(ask: Ask, real: Backend, backend: str, place: Place, first: int) -> tuple[float, Results]:
    begun = time.monotonic()
    place.drop(backend, first)
    measured = sweep.run(
        place.scenario(ask.repetitions - first, first),
        out=place.folder(backend, first),
        jobs=1,
        backend=real,
        formats=("parquet",),
    )
    return time.monotonic() - begun, measured


class _Progress:
    """Says how far it came, and about how long the rest takes."""

    def __init__(self, total: int, say: Say) -> None:
        self._total, self._say = total, say
        self._begun, self._done = time.monotonic(), 0

    def tell(self, name: str) -> None:
        self._done += 1
        rest = (time.monotonic() - self._begun) / self._done * (self._total - self._done)
        left = f", about {rest / 60:.0f} min left" if self._done < self._total else ""
        self._say(f"{self._done} of {self._total}: {name}{left}")
