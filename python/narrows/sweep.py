"""Runs all runs of a scenario, several at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os import cpu_count
from pathlib import Path
from typing import Any

from narrows import extras
from narrows.backends import BY_AGENT, Backend, HasClock, Performs
from narrows.errors import NarrowsError, ScenarioError
from narrows.plan import Plan
from narrows.results import tables
from narrows.results.merge import SHARD
from narrows.results.results import SOUNDNESS, Results, is_finished
from narrows.results.store import Folder, Memory, Store
from narrows.results.tables import Format
from narrows.scenario import parts, traces
from narrows.scenario.load import Run, expand, load
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve, survey
from narrows.signals import undisturbed
from narrows.version import release

Progress = Callable[[int, int], None]
"""Called with the number of finished runs and the number of all runs."""
Clock = Callable[[float, int], None]
"""Called several times a second with the simulated seconds of all active runs together, and with the number
of all runs."""

MAX_JOBS = 1024
"""Maximum number of concurrent runs."""

_NAP_SECONDS = 0.2
"""Longest time that the main thread waits for a run before it handles signals."""


class Interrupted(KeyboardInterrupt):
    """The user stopped the sweep. `results` has the finished runs."""

    def __init__(self, results: Results, done: int, total: int) -> None:
        super().__init__(f"{done} of {total} runs finished")
        self.results, self.done, self.total = results, done, total


def run(
    scenario: Scenario | str | Path,
    *,
    out: str | Path | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    formats: tuple[Format, ...] | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
    resume: bool = False,
) -> Results:
    """Run a scenario with all its variations and seeds.

    Args:
        scenario: the scenario, or the path of its file.
        out: folder for the tables (default: tables in memory only). Earlier results in this folder are
            replaced when the sweep is complete.
        seeds: number of seeds (default: the scenario's).
        jobs: number of concurrent runs, at most the backend's maximum (default: one per core).
        backend: the backend (default: the simulator).
        formats: formats of the tables on disk (default: Parquet, and CSV for tables of up to a million rows).
        shard: (i, n) runs only the i-th of n parts of the runs, 1 <= i <= n. `narrows.results.merge.merge`
            merges the results of all parts.
        progress: called after each finished run.
        clock: called with the simulated time of active runs, if the backend reports it.
        resume: keep the runs that an earlier sweep of the same scenario and version finished in `out`, even
            if that sweep was interrupted or killed.

    Raises:
        ScenarioError: if a run is not possible. Nothing is written then.
        OutputError: if `out` cannot be written.
        Interrupted: on Ctrl-C, with the finished runs.
        NarrowsError: if a run fails. Its `left` has the finished runs, if they are on disk.
    """
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    backend = backend or simulator()
    runs = expand(scenario, seeds)
    resolver = Resolver(backend)
    first = check(runs, resolver, backend)
    metadata = describe(scenario, runs, backend, first)
    if shard is not None:
        metadata[SHARD] = f"{shard[0]}/{shard[1]}"
        runs = part_of(runs, *shard)
    if resume and out is not None and (whole := _whole(Path(out), metadata)) is not None:
        return whole
    store = Memory(metadata) if out is None else Folder(Path(out), metadata, formats, resume=resume)
    return _run_all(runs, resolver, backend, store, most_jobs(jobs, backend), progress, clock)


def part_of(runs: list[Run], i: int, n: int) -> list[Run]:
    """The i-th of n parts of the runs, of equal length up to one run.

    Raises:
        NarrowsError: if there is no such part, or no run in it.
    """
    if not 1 <= i <= n:
        raise NarrowsError(f"shard: found {i}/{n}, expected 1/{n} to {n}/{n}")
    if n > len(runs):
        raise NarrowsError(f"shard: found {n} parts, expected at most {len(runs)}, the number of runs")
    return runs[(i - 1) * len(runs) // n : i * len(runs) // n]


def most_jobs(jobs: int | None, backend: Backend | Performs | None) -> int:
    """The number of concurrent runs, at most the backend's maximum (None: one per core)."""
    return min(jobs or cpu_count() or 1, (backend.most_jobs if backend is not None else None) or MAX_JOBS)


def _whole(folder: Path, metadata: dict[str, Any]) -> Results | None:
    """The results in a folder, if they are complete and have the same metadata."""
    if not is_finished(folder):
        return None
    results = Results.read(folder)
    known = {key: value for key, value in results.metadata.items() if key != SOUNDNESS}
    return results if known == json.loads(json.dumps(metadata)) else None


def simulator() -> Backend:
    """The simulator, which is the default backend."""
    try:
        from narrows.backends.sim import Simulator  # noqa: PLC0415 (reading results needs no native module)
    except ImportError as error:
        raise extras.no_native_module(error) from None
    return Simulator()


_KERNELS = {"kernel": "this kernel", "vm": "the guest's kernel"}
"""How messages call the kernel whose congestion controllers a backend uses, by backend."""


class Resolver:
    """Resolves scenarios with the controllers of a backend."""

    def __init__(self, backend: Backend) -> None:
        offered = backend.congestion_controllers()
        self._ccs = [name for name, _ in offered]
        self._rate_controllers = [name for name, _ in backend.rate_controllers()]
        self._kernel = _KERNELS.get(backend.name, "")
        if self._kernel and not any(about == BY_AGENT for _, about in offered):
            self._kernel += f", without narrows-agent ({extras.remedy('kernel')}),"

    def __call__(self, scenario: Scenario) -> Plan:
        """The plan of a run with this scenario."""
        return resolve(scenario, self._ccs, self._rate_controllers, self._kernel)


def check(runs: list[Run], resolver: Resolver, backend: Backend) -> Plan:
    """Resolve and check all runs, and return the plan of the first.

    Raises:
        ScenarioError: if one of them is not valid.
    """
    first: Plan | None = None
    for item in runs:
        # Runs of a point differ only in their seeds, so check one of them.
        if first is not None and item.factors == runs[item.id - 1].factors:
            continue
        plan = resolver(item.scenario)
        try:
            backend.check(plan)
        except ScenarioError as error:
            raise survey(item.scenario).in_scenario(error).in_source(item.scenario.source) from None
        first = first or plan
    assert first is not None, "a scenario has at least one run"
    return first


def describe(scenario: Scenario, runs: list[Run], backend: Backend, plan: Plan) -> dict[str, Any]:
    """The content of `metadata.json`. It is equal for identical sweeps."""
    factors = list(dict.fromkeys(name for item in runs for name in item.factors))
    return {
        "narrows": release(),
        "backend": backend.name,
        **backend.facts(),
        "scenario": scenario.facts(),
        "traces": traces.digests((item.scenario for item in runs), Path(scenario.source).parent),
        "warmup_s": plan["warmup"] / 1e9,
        "factors": factors,
        "entries": _entries(runs),
        "runs": [{"run": item.id, "seed": item.scenario.seed, **item.factors} for item in runs],
    }


def _entries(runs: list[Run]) -> list[str]:
    """Names of the flows of all points, in the scenario's order."""
    places: dict[str, int] = {}
    previous: Run | None = None
    for item in runs:
        if previous is None or item.factors != previous.factors:
            for place, name in enumerate(parts.names(item.scenario.flows)):
                places.setdefault(name, place)
        previous = item
    return sorted(places, key=places.__getitem__)


def _run_all(
    runs: list[Run],
    resolver: Resolver,
    backend: Backend,
    store: Store,
    jobs: int,
    progress: Progress | None,
    clock: Clock | None,
) -> Results:
    done = len(store.kept)
    if done and progress is not None:
        progress(done, len(runs))
    pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="narrows")
    waiting = iter([item for item in runs if item.id not in store.kept])
    active: set[Future[None]] = set()
    try:
        while True:
            # Submit a run only when a worker is free, so that few plans of a long sweep are in memory.
            for item in waiting:
                active.add(pool.submit(_run_one, item, resolver, backend, store))
                if len(active) >= jobs:
                    break
            if not active:
                break
            finished: set[Future[None]] = set()
            while not finished:
                # Poll, because Ctrl-C may not wake this thread while another one starts a program (1 of 12
                # tries).
                finished, active = wait(active, _NAP_SECONDS, FIRST_COMPLETED)
                if not finished and clock is not None and isinstance(backend, HasClock):
                    clock(backend.active_seconds(), len(runs))
            for future in finished:
                future.result()
                done += 1
                if progress is not None:
                    progress(done, len(runs))
    except KeyboardInterrupt:
        with undisturbed():
            _stop(backend, pool)
            # Some of the active runs may have finished nevertheless.
            done = store.finished
            if done == 0:
                store.abandon()
                raise Interrupted(Results({}, {}), 0, len(runs)) from None
            raise Interrupted(store.finish(complete=False), done, len(runs)) from None
    except BaseException as error:
        with undisturbed():
            _stop(backend, pool)
            left = store.abandon()
        if isinstance(error, NarrowsError):
            error.left = left
        raise
    pool.shutdown(wait=True)
    return store.finish(complete=True)


def _stop(backend: Backend, pool: ThreadPoolExecutor) -> None:
    """End all runs, and wait until they have cleaned up."""
    backend.cancel()
    pool.shutdown(wait=True, cancel_futures=True)


def _run_one(item: Run, resolver: Resolver, backend: Backend, store: Store) -> None:
    started = time.monotonic()
    try:
        output = backend.run(resolver(item.scenario))
    except ScenarioError as error:
        raise error.in_source(item.scenario.source) from None
    data = tables.tables(item.id, item.scenario.seed, item.factors, output)
    store.add(item.id, data, time.monotonic() - started, output.get("soundness"))
    store.keep(item.id, output.get("logs", {}))
