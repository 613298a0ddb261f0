"""Executes all runs of a scenario, several at a time."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from narrows import _native, executors, extension, extras
from narrows.backends import (
    BY_AGENT,
    CAPTURE,
    Backend,
    Monitored,
    Output,
    Pace,
    Performs,
    TakesClasses,
)
from narrows.congestion import class_file
from narrows.errors import NarrowsError, OutputError, ScenarioError
from narrows.executors import Batch, Executor, Job, Report, Task
from narrows.executors.batches import Batches
from narrows.executors.local import Threads, cores
from narrows.executors.worker import Apart, output_of
from narrows.plan import Plan
from narrows.results import tables
from narrows.results.datasets import store as datasets
from narrows.results.datasets.store import Dataset
from narrows.results.datasets.urls import url_of
from narrows.results.merge import SHARD
from narrows.results.results import SOUNDNESS, STOPPED, Results, is_finished, left_by
from narrows.results.store import Folder, Memory, Store
from narrows.results.tables import Format
from narrows.scenario.inputs import digests
from narrows.scenario.load import Run, expand, load
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve, survey
from narrows.signals import undisturbed
from narrows.version import release

Progress = Callable[[int, int], None]
"""Called with the number of finished runs and the number of all runs."""
Clock = Callable[[Pace, int], None]
"""Called several times a second with the progress of the active runs, and with the number of all runs."""

Hosts = Callable[[str, int, int], None]
"""Called with the name of a host, and its numbers of finished and failed runs."""

MAX_JOBS = 1024
"""Maximum number of concurrent runs."""


class Interrupted(KeyboardInterrupt):
    """The user stopped the sweep. `results` has the finished runs.

    `stopped` has the data of the active runs up to the interruption. The data is in memory, or in the folder
    `NAME-stopped` next to the sweep's folder. The metadata has the simulated time of each run (`stopped_s`).
    `stopped` is None if no run was active, or if the data cannot be written. In the second case, `problem`
    has the reason.
    """

    def __init__(self, results: Results, done: int, total: int, stopped: Results | None = None) -> None:
        super().__init__(f"{done} of {total} runs finished")
        self.results, self.done, self.total, self.stopped = results, done, total, stopped
        self.problem: str | None = None


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
    executor: str | Executor | None = None,
    hosts: Hosts | None = None,
) -> Results:
    """Run a scenario with all its variations and seeds.

    Args:
        scenario: the scenario, or the path of its file.
        out: folder for the tables (default: tables in memory only). Earlier results in this folder are
            replaced when the sweep is complete. A URL such as ``s3://bucket/folder`` is the place of a
            dataset (see `narrows.results.datasets`), where earlier results are an error.
        seeds: number of seeds (default: the scenario's).
        jobs: number of concurrent runs, at most the backend's maximum (default: one per core).
        backend: the backend (default: the simulator).
        formats: formats of the tables on disk (default: Parquet, and CSV for tables of up to a million rows).
        shard: (i, n) runs only the i-th of n parts of the runs, 1 <= i <= n. `narrows.results.merge.merge`
            merges the results of all parts.
        progress: called after each finished run.
        clock: called with the progress of active runs, if the backend reports it.
        resume: keep the runs that an earlier sweep of the same scenario and version finished in `out`. The
            earlier sweep may have been interrupted or killed.
        executor: where the runs take place: `local` (threads), `processes`, `ray`, `ray:ADDRESS` or `slurm`,
            or an executor (default: `local`). Executors other than `local` need the simulator and refuse
            `clock`.
        hosts: called after each batch of an executor.

    Raises:
        ScenarioError: if a run is not possible. In this case, nothing is written.
        OutputError: if `out` cannot be written.
        Interrupted: on Ctrl-C. The error has the finished runs, and the data of the active runs up to the
            interruption.
        NarrowsError: if a run fails. The error's `left` has the finished runs, if they are on disk.
    """
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    backend = backend or simulator()
    runs = expand(scenario, seeds)
    resolver = Resolver(backend)
    first = check(runs, resolver, backend)
    metadata = describe(scenario, runs, backend, first)
    if resolver.classes:
        metadata["classes"] = resolver.classes
    if (module := extension.digest()) is not None:
        metadata["native"] = module
    if shard is not None:
        metadata[SHARD] = f"{shard[0]}/{shard[1]}"
        runs = part_of(runs, *shard)
    url = None if out is None else url_of(out)
    if url is not None:
        _check_dataset(url, backend, formats, shard)
    if resume and out is not None and (whole := _whole(out, metadata)) is not None:
        return whole
    maker = executor_of(executor, jobs, backend)
    if not maker.shares_memory and clock is not None:
        raise NarrowsError(f"clock: found executor {maker.name}, expected local")
    if not maker.shares_memory and url is not None and url.startswith("memory:"):
        raise NarrowsError(
            f"--out: found {url} and executor {maker.name}, expected a place that workers share"
        )

    if any(item.point.has_capture for item in runs):
        if out is None or url is not None:
            raise ScenarioError(
                "found a capture without a results folder, expected --out FOLDER", "capture", scenario.source
            )
        if not maker.shares_memory:
            raise ScenarioError(f"found executor {maker.name}, expected local", "capture", scenario.source)

    def make(store: Store) -> Results:
        return _run_all(runs, resolver, backend, store, maker, progress, clock, hosts)

    if url is not None:
        return make(Dataset(url, metadata, resume=resume))
    if out is not None:
        return make(Folder(Path(out), metadata, formats, resume=resume))
    if maker.shares_memory:
        return make(Memory(metadata))
    with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
        try:
            return make(Folder(Path(folder) / "results", metadata, ("parquet",))).in_memory()
        except Interrupted as stopped:
            # Read the finished runs into memory, because the temporary folder is about to be removed.
            if stopped.done:
                stopped.results = stopped.results.in_memory()
            raise
        except NarrowsError as error:
            if (left := left_by(error)) is not None:
                error.left = left.in_memory()
            raise


def executor_of(executor: str | Executor | None, jobs: int | None, backend: Backend | None) -> Executor:
    """The executor of a sweep.

    Args:
        executor: an executor or its name (None: threads).
        jobs: number of concurrent runs (None: the executor's default).
        backend: the backend (None: the simulator).

    Raises:
        NarrowsError: if the backend cannot use the executor.
    """
    if executor is None or executor == Threads.name:
        return Threads(most_jobs(jobs, backend))
    if isinstance(executor, Threads):
        return Threads(most_jobs(executor.slots, backend))
    if backend is not None and backend.name in _KERNELS:
        name = executor if isinstance(executor, str) else executor.name
        raise NarrowsError(
            f"executor: found {name} with runs on {backend.name}, expected local, because real stacks share "
            "one machine"
        )
    return executors.named(executor, jobs) if isinstance(executor, str) else executor


def part_of(runs: list[Run], i: int, n: int) -> list[Run]:
    """The i-th of n parts of the runs. The lengths of the parts differ by at most one run.

    Raises:
        NarrowsError: if there is no such part, or no run in it.
    """
    if not 1 <= i <= n:
        raise NarrowsError(f"shard: found {i}/{n}, expected 1/{n} to {n}/{n}")
    if n > len(runs):
        raise NarrowsError(f"shard: found {n} parts, expected at most {len(runs)}, the number of runs")
    return runs[(i - 1) * len(runs) // n : i * len(runs) // n]


def most_jobs(jobs: int | None, backend: Backend | Performs | None) -> int:
    """The number of concurrent runs: `jobs` (None: one per core), but at most the backend's maximum."""
    return min(jobs or cores(), (backend.most_jobs if backend is not None else None) or MAX_JOBS)


def _check_dataset(
    url: str, backend: Backend, formats: tuple[Format, ...] | None, shard: tuple[int, int] | None
) -> None:
    """Check that a sweep can write a dataset.

    Raises:
        NarrowsError: if the sweep cannot write a dataset.
    """
    if backend.name in _KERNELS:
        raise NarrowsError(
            f"--out: found {url}, expected a folder, because runs on {backend.name} also write logs and a "
            "simulation"
        )
    if formats is not None and set(formats) != {"parquet"}:
        raise NarrowsError(f"--formats: found {','.join(formats)}, expected parquet, the format of {url}")
    if shard is not None:
        raise NarrowsError(f"--shard: found {url}, expected a folder, because narrows merge reads folders")


def _whole(out: str | Path, metadata: dict[str, Any]) -> Results | None:
    """The results in a folder or at a URL, if they are complete and have the same metadata."""
    if (url := url_of(out)) is not None:
        return datasets.whole(url, metadata)
    folder = Path(out)
    if not is_finished(folder):
        return None
    results = Results.read(folder)
    known = {key: value for key, value in results.metadata.items() if key != SOUNDNESS}
    return results if known == json.loads(json.dumps(metadata)) else None


def simulator() -> Backend:
    """The simulator, which is the default backend."""
    try:
        from narrows.backends.sim import Simulator  # noqa: PLC0415 (slow to import)
    except ImportError as error:
        raise extras.no_native_module(error) from None
    return Simulator()


_KERNELS = {"kernel": "this kernel", "vm": "the guest's kernel"}
"""For each backend on real stacks, the words for its kernel in messages about congestion controllers."""


class Resolver:
    """Resolves scenarios with the controllers of a backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend if isinstance(backend, TakesClasses) else None
        self.classes: dict[str, str] = {}
        """SHA-256 of each Python controller's file. The keys are values of `cc`."""
        self._checked: set[tuple[str, str]] = set()
        offered = backend.congestion_controllers()
        self._ccs = [name for name, _ in offered]
        self._rate_controllers = [name for name, _ in backend.rate_controllers()]
        self._kernel = _KERNELS.get(backend.name, "")
        if self._kernel and not any(about == BY_AGENT for _, about in offered):
            self._kernel += f", without narrows-agent ({extras.remedy('kernel')}),"

    def __call__(self, scenario: Scenario) -> Plan:
        """The plan of a run with this scenario.

        Raises:
            ScenarioError: if the run is not possible.
        """
        if self._backend is not None:
            self._load_classes(scenario, self._backend)
        return resolve(scenario, self._ccs, self._rate_controllers, self._kernel)

    def _load_classes(self, scenario: Scenario, backend: TakesClasses) -> None:
        """Load the Python controllers that the scenario names by file, and check the parameters of each."""
        for i, flow in enumerate(scenario.flows):
            name, params = flow.cc.name, flow.cc.params
            # Check each controller once, because the runs of a sweep have many flows but few controllers.
            if (chosen := (name, repr(params))) in self._checked:
                continue
            try:
                if name not in self._ccs and class_file(name) is not None:
                    self.classes[name] = backend.load_class(name, Path(scenario.source).parent)
                    self._ccs.append(name)
                backend.check_parameters(name, params)
                self._checked.add(chosen)
            except ScenarioError as error:
                raise ScenarioError(error.message, f"flows.{i}.cc", scenario.source) from error


def check(runs: list[Run], resolver: Resolver, backend: Backend) -> Plan:
    """Resolve and check all runs, and return the plan of the first run.

    Raises:
        ScenarioError: if a run is not valid.
    """
    first: Plan | None = None
    for item in runs:
        # Runs of a point differ only in their seeds, so check one of them.
        if first is not None and item.factors == runs[item.id - 1].factors:
            continue
        plan = resolver(item.point)
        try:
            backend.check(plan)
        except ScenarioError as error:
            raise survey(item.point).in_scenario(error).in_source(item.point.source) from None
        first = first or plan
    assert first is not None, "a scenario has at least one run"
    return first


def describe(scenario: Scenario, runs: list[Run], backend: Backend, plan: Plan) -> dict[str, Any]:
    """The content of `metadata.json`. Identical sweeps have equal content."""
    factors = list(dict.fromkeys(name for item in runs for name in item.factors))
    return {
        "narrows": _native.version,  # the package's version, which is slower to read from its metadata
        "backend": backend.name,
        **backend.facts(),
        "scenario": scenario.facts(),
        "traces": digests(
            {id(item.point): item.point for item in runs}.values(), Path(scenario.source).parent
        ),
        "warmup_s": plan["warmup"] / 1e9,
        "factors": factors,
        "entries": _entries(runs),
        "runs": [{"run": item.id, "seed": item.seed, **item.factors} for item in runs],
    }


def _entries(runs: list[Run]) -> list[str]:
    """Names of the flows of all points, in the scenario's order."""
    places: dict[str, int] = {}
    previous: Run | None = None
    for item in runs:
        if previous is None or item.factors != previous.factors:
            for place, flow in enumerate(item.point.flows):
                places.setdefault(flow.name, place)
        previous = item
    return sorted(places, key=places.__getitem__)


def _run_all(
    runs: list[Run],
    resolver: Resolver,
    backend: Backend,
    store: Store,
    executor: Executor,
    progress: Progress | None,
    clock: Clock | None,
    hosts: Hosts | None,
) -> Results:
    done = len(store.kept)
    if done and progress is not None:
        progress(done, len(runs))
    batches = Batches(_jobs(runs, resolver, store.kept), len(runs) - done, executor, store.segment_seconds)
    cut = _Cut()
    _begin(backend)
    scratch = store.stage.absolute() if isinstance(store, Folder) else None
    try:
        for report in executor.perform(_task(runs, backend, store, executor, cut), batches, scratch):
            if report is None:
                if clock is not None and isinstance(backend, Monitored):
                    clock(backend.pace(), len(runs))
                continue
            batches.learn(report)
            if not executor.shares_memory:
                store.note(report.seconds, report.segments)
            done += len(report.seconds)
            if hosts is not None:
                hosts(report.host, len(report.seconds), int(report.error is not None))
            if progress is not None and report.seconds:
                progress(done, len(runs))
            if report.error is not None:
                raise report.error
    except KeyboardInterrupt:
        with undisturbed():
            try:
                if isinstance(backend, Monitored) and executor.shares_memory:
                    backend.stop()
                else:
                    backend.cancel()
                _end(executor, store)
                _begin(backend)
                # Some runs that were active at the interruption may have finished since then.
                done = store.settle()
                results = store.finish(complete=False) if done else Results({}, {})
            except NarrowsError as error:
                cut.discard()
                error.left = error.left or store.abandon()
                raise
            if done == 0:
                store.abandon()
            interrupted = Interrupted(results, done, len(runs))
            try:
                interrupted.stopped = cut.results(store)
            except OutputError as error:
                interrupted.problem = str(error)
            finally:
                cut.discard()
            raise interrupted from None
    except BaseException as error:
        with undisturbed():
            backend.cancel()
            _end(executor, store)
            _begin(backend)
            left = store.abandon()
        if isinstance(error, NarrowsError):
            error.left = left
        raise
    try:
        if lacking := len(runs) - store.settle():
            raise OutputError(f"found no results of {lacking} of {len(runs)} runs, although no run failed")
    except OutputError as error:
        error.left = store.abandon()
        raise
    return store.finish(complete=True)


class _Cut:
    """The data of the runs that an interruption stopped."""

    def __init__(self) -> None:
        self._data: dict[int, dict[str, pa.Table]] = {}
        self._seconds: dict[int, float] = {}
        self._outputs: dict[int, Output] = {}

    def add(self, run: int, data: dict[str, pa.Table], seconds: float, output: Output) -> None:
        """Add a run that was stopped after some simulated seconds. May be called from any thread."""
        self._outputs[run] = output
        self._seconds[run] = seconds
        self._data[run] = data

    def discard(self) -> None:
        """Remove the temporary files of the runs."""
        for output in self._outputs.values():
            if (capture := output.get(CAPTURE)) is not None:
                shutil.rmtree(capture, ignore_errors=True)

    def results(self, store: Store) -> Results | None:
        """Write the stopped runs as separate results, next to the results of the store. None without runs.

        Raises:
            OutputError: if they cannot be written.
        """
        if not self._data:
            return None
        described = [entry for entry in store.metadata.get("runs", []) if entry["run"] in self._data]
        metadata = {
            **store.metadata,
            "runs": described,
            STOPPED: {str(run): seconds for run, seconds in sorted(self._seconds.items())},
        }
        beside = store.beside("stopped", metadata)
        try:
            for run, data in self._data.items():
                beside.add(run, data, 0.0)
                with _files_of(self._outputs[run]) as files:
                    beside.keep(run, files)
        except OutputError:
            beside.abandon()
            raise
        return beside.finish(complete=True)


def _begin(backend: Backend) -> None:
    """Prepare the backend for new runs. It may have been used in an earlier sweep that was interrupted."""
    if isinstance(backend, Monitored):
        backend.begin()


@contextlib.contextmanager
def _files_of(output: Output) -> Iterator[Mapping[str, str | Path]]:
    """The logs and captures of a run by file name. Captures are removed at the end of the block."""
    capture: Path | None = output.get(CAPTURE)
    try:
        captured = {path.name: path for path in sorted(capture.iterdir())} if capture is not None else {}
        yield {**output.get("logs", {}), **captured}
    finally:
        if capture is not None:
            shutil.rmtree(capture, ignore_errors=True)


def _end(executor: Executor, store: Store) -> None:
    """Wait until all runs have ended and cleaned up. Keep the results of batches that had already ended."""
    for report in executor.cancel():
        if not executor.shares_memory:
            with contextlib.suppress(OutputError):  # e.g. a full disk; the results of other runs are kept
                store.note(report.seconds, report.segments)


def _jobs(runs: Iterable[Run], resolver: Resolver, kept: frozenset[int]) -> Iterator[Job]:
    """Jobs for the runs that the store does not have yet. All runs of a point share one plan."""
    previous: Run | None = None
    plan: Plan | None = None
    for item in runs:
        if plan is None or previous is None or item.factors != previous.factors:
            # Use the point's first seed, so that all shards draw the same pairs of hosts.
            plan = resolver(item.point)
        previous = item
        if item.id not in kept:
            yield Job(item.id, item.seed, item.factors, plan)


def _task(runs: list[Run], backend: Backend, store: Store, executor: Executor, cut: _Cut) -> Task:
    """Return the function that performs a batch of runs."""
    source = runs[0].point.source
    if not executor.shares_memory:
        assert store.writer is not None
        return Apart(backend, store.writer, source, release())

    def here(batch: Batch) -> Report:
        seconds: dict[int, float] = {}
        for job in itertools.chain.from_iterable(batch):
            started = time.monotonic()
            output = output_of(job, backend, source)
            seconds_taken = time.monotonic() - started
            if (stopped_s := output.get(STOPPED)) is not None:
                data = tables.tables(job.run, job.seed, job.factors, output)
                cut.add(job.run, data, stopped_s, output)
                break
            with _files_of(output) as files:
                data = tables.tables(job.run, job.seed, job.factors, output)
                seconds[job.run] = seconds_taken
                store.add(job.run, data, seconds_taken, output.get("soundness"))
                store.keep(job.run, files)
        return Report("", seconds)

    return here
