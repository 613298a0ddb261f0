"""Running a validation: every cell simulated and on real stacks; what is finished is kept.

OUT/scenarios/<algorithm>/<cell>.toml   what both sides run; `narrows run` takes it, too
OUT/sim/<algorithm>/<cell>              tables of the simulation
OUT/<backend>/<algorithm>/<cell>        tables of the runs on real stacks
OUT/finished.jsonl                      when each of those was measured, on which kernel, and how long it took
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from narrows import sweep
from narrows.backends import Backend
from narrows.errors import NarrowsError
from narrows.results.results import Results, came_to_its_end
from narrows.scenario.load import loads
from narrows.scenario.model import Scenario
from narrows.signals import undisturbed
from narrows.validate import grid, measures
from narrows.validate.grid import Cell, Flows
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

SIMULATED = "sim"
"""Folder of the simulations."""
FINISHED = "finished.jsonl"
_NAP_SECONDS = 0.2

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
    seeds: int = 9
    """Simulated runs of a cell with two flows."""
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
    failed: dict[str, str] = field(default_factory=dict)
    """Why a cell has no figures, by algorithm and cell."""
    kernels: list[str] = field(default_factory=list)
    """Versions that were measured."""
    dates: list[str] = field(default_factory=list)
    """Days of the measurements, ISO 8601, first and last."""


def available(real: Backend, simulator: Backend) -> tuple[str, ...]:
    """Linux's algorithms that both sides have."""
    names = [{name for name, _ in backend.congestion_controllers()} for backend in (real, simulator)]
    return tuple(name for name in LINUX if name in names[0] and name in names[1])


def scenario(ask: Ask, algorithm: str, cell: Cell, runs: int) -> Scenario:
    """What a side runs, from the file that it is written to."""
    path = ask.out / "scenarios" / algorithm / f"{cell.name}.toml"
    text = grid.scenario(cell, algorithm, ask.duration)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return loads(text, str(path), {"sweep.seeds": runs})


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
    wanted = [(algorithm, cell) for cell in ask.cells for algorithm in ask.algorithms]
    if real is not None:
        outcome.failed = _measure(ask, real, backend, wanted, say)
    places = {(algorithm, cell): place(ask, backend, algorithm, cell) for algorithm, cell in wanted}
    there = [pair for pair in wanted if came_to_its_end(places[pair])]
    for number, (algorithm, cell) in enumerate(there, start=1):
        outcome.findings += _compare(ask, algorithm, cell, places[algorithm, cell], simulator, jobs, other)
        if number % 50 == 0:
            say(f"{number} of {len(there)} cells simulated")
    _when(ask, backend, outcome)
    return outcome


def place(ask: Ask, side: str, algorithm: str, cell: Cell) -> Path:
    """The folder of a cell's results on a side."""
    return ask.out / side / algorithm / cell.name


def _compare(
    ask: Ask,
    algorithm: str,
    cell: Cell,
    folder: Path,
    simulator: Backend | None,
    jobs: int | None,
    other: Other | None,
) -> Iterator[Finding]:
    real = Results.read(folder)
    # A flow alone meets the same losses on both sides: the relay draws them from the same seed. Packets of
    # two flows come in another order, so that their simulated runs stand for what may happen, and are more.
    seeds = len(real.runs) if cell.flows is Flows.SINGLE else ask.seeds
    simulated = sweep.run(
        scenario(ask, algorithm, cell, seeds),
        out=place(ask, SIMULATED, algorithm, cell),
        jobs=jobs,
        backend=simulator,
        formats=("parquet",),
    )
    models, reals = measures.sides(simulated), measures.sides(real)
    unsound = sum(not verdict["sound"] for verdict in real.soundness.values())
    others = other(algorithm, cell, float(simulated.metadata["warmup_s"])) if other is not None else {}
    for flow in cell.tested:
        if flow in reals:
            yield Finding(algorithm, cell, flow, models[flow], reals[flow], unsound, others.get(flow))


def _measure(
    ask: Ask, real: Backend, backend: str, wanted: Sequence[tuple[str, Cell]], say: Say
) -> dict[str, str]:
    """Run on real stacks what is not kept; why what failed did."""
    ahead = [pair for pair in wanted if not _kept(ask, backend, *pair)]
    kept = len(wanted) - len(ahead)
    say(f"{len(wanted)} cells, {kept} of them kept from before; {len(ahead)} x {ask.repetitions} runs ahead")
    failed: dict[str, str] = {}
    progress = _Progress(len(ahead), say)
    pool = ThreadPoolExecutor(max_workers=real.most_jobs or 1, thread_name_prefix="validate")
    waiting = iter(ahead)
    active: dict[Future[float], tuple[str, Cell]] = {}
    try:
        while True:
            for pair in waiting:
                active[pool.submit(_one, ask, real, backend, *pair)] = pair
                if len(active) >= (real.most_jobs or 1):
                    break
            if not active:
                break
            done, _ = wait(active, _NAP_SECONDS, FIRST_COMPLETED)
            for future in done:
                algorithm, cell = active.pop(future)
                try:
                    _note(ask, backend, algorithm, cell, future.result(), str(real.facts().get("kernel", "")))
                except NarrowsError as error:
                    # One that breaks must not take hours of others along.
                    failed[f"{algorithm}/{cell.name}"] = str(error)
                    say(f"{algorithm}/{cell.name}: {error}")
                progress.tell(f"{algorithm}/{cell.name}")
    finally:
        with undisturbed():
            if active:
                real.cancel()
            pool.shutdown(wait=True, cancel_futures=True)
    return failed


def _one(ask: Ask, real: Backend, backend: str, algorithm: str, cell: Cell) -> float:
    begun = time.monotonic()
    sweep.run(
        scenario(ask, algorithm, cell, ask.repetitions),
        out=place(ask, backend, algorithm, cell),
        jobs=1,
        backend=real,
        formats=("parquet",),
    )
    return time.monotonic() - begun


def _kept(ask: Ask, backend: str, algorithm: str, cell: Cell) -> bool:
    """Whether a cell is finished: the same scenario, runs enough, and none of them disturbed."""
    folder = place(ask, backend, algorithm, cell)
    if not came_to_its_end(folder):
        return False
    earlier = Results.read(folder)
    runs = len(earlier.runs)
    same = earlier.metadata.get("scenario") == scenario(ask, algorithm, cell, runs).full()
    enough = runs >= ask.repetitions
    return same and enough and all(verdict["sound"] for verdict in earlier.soundness.values())


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


_lines = threading.Lock()


def _note(ask: Ask, backend: str, algorithm: str, cell: Cell, seconds: float, kernel: str) -> None:
    entry = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": backend,
        "kernel": kernel,
        "algorithm": algorithm,
        "cell": cell.name,
        "runs": ask.repetitions,
        "wall_s": round(seconds, 1),
    }
    with _lines, (ask.out / FINISHED).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def _when(ask: Ask, backend: str, outcome: Outcome) -> None:
    """Kernel versions and days of what is compared, of each cell the last."""
    path = ask.out / FINISHED
    if not path.is_file():
        return
    compared = {(finding.algorithm, finding.cell.name) for finding in outcome.findings}
    last: dict[tuple[str, str], dict[str, str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        key = (entry["algorithm"], entry["cell"])
        if entry["backend"] == backend and key in compared:
            last[key] = entry
    outcome.kernels = sorted({entry["kernel"] for entry in last.values()})
    days = sorted({entry["when"][:10] for entry in last.values()})
    outcome.dates = days[:1] + days[1:][-1:]
