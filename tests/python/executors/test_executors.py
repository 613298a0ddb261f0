"""Executors without a cluster: batches, workers in other processes, and sweeps."""

import multiprocessing
import os
import pickle
import shutil
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import executors, extras, sweep
from narrows.cli import options
from narrows.cli.progress import Hosts, Lines
from narrows.errors import NarrowsError, OutputError, ScenarioError
from narrows.executors import Job, Report
from narrows.executors.batches import Batches
from narrows.executors.local import Processes, Threads
from narrows.executors.worker import Apart
from narrows.results import exchange, segments
from narrows.results.results import Results
from narrows.scenario.load import loads
from narrows.version import release
from sketch import Sketch
from texts import TWO_FLOWS

TEXT = f"""
name = "demo"
duration = "2s"{TWO_FLOWS}[sweep]
seeds = 4
[sweep.vary]
"topology.queue" = ["1bdp", "2bdp"]
"""
RUNS = 8


def scenario():
    return loads(TEXT, "demo.toml")


class Refusing(Sketch):
    """A backend that refuses one seed."""

    def __init__(self, seed):
        self.seed = seed

    def run(self, plan):
        if plan["seed"] == self.seed:
            raise ScenarioError("refused", "flows.0")
        return super().run(plan)


class Elsewhere:
    """Workers that share only files with the sweep.

    They get pickled tasks and batches, and send pickled reports.
    """

    name = "elsewhere"
    shares_memory = False
    batch_seconds = segments.WAIT_SECONDS
    slots = 2

    def __init__(self, moved=False):
        self.moved = moved
        self.cancelled = False
        self.batches = []

    def perform(self, task, batches, scratch):
        assert scratch.is_absolute() and scratch.is_dir()
        task = pickle.loads(pickle.dumps(task))
        if self.moved:
            task = Apart(task.backend, segments.Writer(Path("/nowhere")), task.source, task.version)
        for batch in batches:
            self.batches.append(batch)
            yield None
            yield pickle.loads(pickle.dumps(task(pickle.loads(pickle.dumps(batch)))))

    def cancel(self):
        self.cancelled = True
        return []


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.csv"
    }


@pytest.fixture
def local(tmp_path):
    sweep.run(scenario(), out=tmp_path / "local", backend=Sketch())
    return files(tmp_path / "local")


def plan():
    return sweep.Resolver(Sketch())(sweep.expand(scenario())[0].scenario)


def jobs(count):
    return [Job(i, i, {}, {}) for i in range(count)]


@given(
    count=st.integers(0, 200),
    slots=st.integers(1, 50),
    seconds=st.sampled_from([0.0, 2.0, 120.0]),
    pace=st.floats(0.001, 10),
)
def test_each_run_is_in_one_batch(count, slots, seconds, pace):
    executor = SimpleNamespace(slots=slots, batch_seconds=seconds)
    batches = Batches(iter(jobs(count)), count, executor)
    made = []
    for batch in batches:
        runs = [job.run for part in batch for job in part]
        batches.learn(Report("", dict.fromkeys(runs, pace)))
        assert len(runs) == 1 or len(runs) * pace <= seconds
        assert len(runs) == 1 or len(runs) <= -(-(count - len(made)) // (3 * slots))
        assert all(len(part) == 1 or len(part) * pace <= segments.WAIT_SECONDS for part in batch)
        made += runs
    assert made == list(range(count))


def test_batches_of_short_runs_become_long():
    batches = Batches(iter(jobs(1000)), 1000, SimpleNamespace(slots=1, batch_seconds=2.0))
    assert len(next(batches)[0]) == 1
    batches.learn(Report("", {0: 0.05}))
    assert len(next(batches)[0]) == 40
    slurm = Batches(iter(jobs(10_000)), 10_000, SimpleNamespace(slots=1, batch_seconds=120.0))
    slurm.learn(Report("", {0: 0.05}))
    assert [len(part) for part in next(slurm)] == [40] * 60


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "runs").mkdir()
    return segments.new_stage(tmp_path)


def batch_of(*parts):
    shared = plan()
    return tuple(tuple(Job(run, run + 1, {}, shared) for run in part) for part in parts)


def test_a_worker_writes_a_segment_for_each_part(tmp_path, stage):
    report = Apart(Sketch(), segments.Writer(stage), "x.toml", release())(batch_of((3, 4), (5,)))
    assert set(report.seconds) == {3, 4, 5} and report.error is None and not report.segments
    assert {path.name for path in (tmp_path / "runs").glob("[0-9]*")} == {"3", "5"}
    assert segments.runs_in(tmp_path) == [3, 4, 5]


def test_a_repeated_batch_makes_only_what_is_missing(tmp_path, stage):
    Apart(Sketch(), segments.Writer(stage), "x.toml", release())(batch_of((3, 4)))
    before = files(tmp_path)
    report = Apart(Refusing(4), segments.Writer(stage), "x.toml", release())(batch_of((3, 4), (5,)))
    assert report.error is None and set(report.seconds) == {3, 4, 5}
    assert {name: content for name, content in files(tmp_path).items() if name in before} == before
    assert segments.runs_in(tmp_path) == [3, 4, 5]


def test_a_worker_without_the_folder_returns_the_files(tmp_path, stage):
    batch = batch_of((3, 4), (5,))
    report = Apart(Sketch(), segments.Writer(tmp_path / "elsewhere"), "x.toml", release())(batch)
    Apart(Sketch(), segments.Writer(stage), "x.toml", release())(batch)
    for number, content in report.segments.items():
        assert content == files(tmp_path / f"runs/{number}")
    assert set(report.segments) == {3, 5}


def test_a_run_that_fails_ends_the_batch_and_keeps_the_runs_before_it(tmp_path, stage):
    report = Apart(Refusing(5), segments.Writer(stage), "x.toml", release())(batch_of((3, 4), (5,)))
    assert str(report.error) == "x.toml: flows.0: refused"
    assert set(report.seconds) == {3}
    assert segments.runs_in(tmp_path) == [3]


def test_a_worker_of_another_version_makes_no_run(tmp_path, stage):
    report = Apart(Sketch(), segments.Writer(stage), "x.toml", "0.1.9")(batch_of((3,)))
    assert isinstance(report.error, NarrowsError)
    assert f"found Narrows {release()}, expected 0.1.9" in str(report.error)
    assert segments.runs_in(tmp_path) == []


def test_a_worker_on_a_full_disk_reports_it(stage, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segments, "put", full)
    report = Apart(Sketch(), segments.Writer(stage), "x.toml", release())(batch_of((3,)))
    assert isinstance(report.error, OutputError) and "No space left on device" in str(report.error)


@pytest.mark.parametrize("moved", [False, True])
def test_the_tables_are_those_of_threads(tmp_path, local, moved):
    told, hosts = [], []
    results = sweep.run(
        scenario(),
        out=tmp_path / "a",
        backend=Sketch(),
        executor=Elsewhere(moved),
        progress=lambda *at: told.append(at),
        hosts=lambda *at: hosts.append(at),
    )
    assert files(tmp_path / "a") == local
    assert results.runs.num_rows == RUNS
    assert told[-1] == (RUNS, RUNS)
    assert sum(done for _, done, _ in hosts) == RUNS and not any(failed for *_, failed in hosts)


def test_without_a_folder_the_tables_are_in_memory():
    results = sweep.run(scenario(), backend=Sketch(), executor=Elsewhere())
    assert results.folder is None
    expected = sweep.run(scenario(), backend=Sketch())
    for name in ("runs", "flows", "link_samples"):
        assert results.pandas(name).equals(expected.pandas(name))


def test_without_a_folder_an_interrupted_or_failed_sweep_keeps_its_finished_runs():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(sweep.Interrupted) as stopped:
        sweep.run(scenario(), backend=Sketch(), executor=Elsewhere(), progress=stop)
    with pytest.raises(ScenarioError) as failed:
        sweep.run(scenario(), backend=Refusing(3), executor=Elsewhere())
    for left, runs in ((stopped.value.results, [0]), (failed.value.left, [0, 1])):
        assert left.runs["run"].to_pylist() == runs
        assert left.flows.num_rows == 2 * len(runs)


def test_an_attempt_that_failed_in_a_segment_fails_again(tmp_path, monkeypatch):
    """The first attempt writes the runs before the failure to a segment, but its report is lost."""
    monkeypatch.setattr(Batches, "_lengths", lambda _: (RUNS, RUNS))

    class Lost(Elsewhere):
        def perform(self, task, batches, scratch):
            batch = next(batches)
            task(batch)
            yield task(batch)

    with pytest.raises(ScenarioError, match="refused") as failed:
        sweep.run(scenario(), out=tmp_path / "a", backend=Refusing(3), executor=Lost())
    assert failed.value.left.runs["run"].to_pylist() == [0, 1]


def test_results_that_lack_a_run_are_not_complete(tmp_path):
    class Forgetful(Elsewhere):
        def perform(self, task, batches, scratch):
            next(batches)
            yield from super().perform(task, batches, scratch)

    sweep.run(scenario(), out=tmp_path / "a", backend=Sketch())
    before = files(tmp_path / "a")
    with pytest.raises(OutputError, match="found no results of 1 of 8 runs"):
        sweep.run(scenario(), out=tmp_path / "a", backend=Sketch(), executor=Forgetful())
    after = files(tmp_path / "a")
    assert {name: content for name, content in after.items() if "interrupted" not in name} == before


def test_batches_that_ended_unseen_are_kept(tmp_path):
    class Late(Elsewhere):
        def perform(self, task, batches, scratch):
            task = Apart(task.backend, segments.Writer(Path("/nowhere")), task.source, task.version)
            first, self.late = task(next(batches)), task(next(batches))
            yield first

        def cancel(self):
            return [self.late]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(scenario(), out=tmp_path / "a", backend=Sketch(), executor=Late(), progress=stop)
    assert caught.value.done == 2


def test_an_interrupted_sweep_on_a_full_disk_unlocks_its_folder(tmp_path, monkeypatch):
    def stop(done, total):
        if done == 2:
            monkeypatch.setattr(segments, "put", full)
            raise KeyboardInterrupt

    def full(*_):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left"):
        sweep.run(scenario(), out=tmp_path / "a", backend=Sketch(), jobs=1, progress=stop)
    monkeypatch.undo()
    sweep.run(scenario(), out=tmp_path / "a", backend=Sketch())


def test_a_failed_run_ends_the_sweep_and_keeps_the_finished_runs(tmp_path):
    executor, hosts = Elsewhere(), []
    with pytest.raises(ScenarioError, match=r"^demo\.toml: flows\.0: refused$") as caught:
        sweep.run(
            scenario(),
            out=tmp_path / "a",
            backend=Refusing(3),
            executor=executor,
            hosts=lambda *at: hosts.append(at),
        )
    assert caught.value.left.runs["seed"].to_pylist() == [1, 2]
    assert executor.cancelled and hosts[-1][2] == 1
    assert not list((tmp_path / "a").rglob(".*"))


def test_an_interrupted_sweep_keeps_runs_that_were_not_reported_and_continues(tmp_path, local):
    class Slow(Elsewhere):
        def perform(self, task, batches, scratch):
            task(next(batches))
            yield task(next(batches))

    def stop(done, total):
        raise KeyboardInterrupt

    executor = Slow()
    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(scenario(), out=tmp_path / "a", backend=Sketch(), executor=executor, progress=stop)
    assert executor.cancelled and caught.value.done == 2
    assert caught.value.results.runs["run"].to_pylist() == [0, 1]
    executor = Elsewhere()
    sweep.run(scenario(), out=tmp_path / "a", backend=Sketch(), executor=executor, resume=True)
    assert [job.run for batch in executor.batches for part in batch for job in part] == list(range(2, RUNS))
    assert files(tmp_path / "a") == local


def test_a_worker_that_outlives_a_killed_sweep_adds_nothing_to_the_next_one(tmp_path, local):
    class Killed(Elsewhere):
        def perform(self, task, batches, scratch):
            self.task, self.late = task, next(batches)
            yield task(next(batches))
            shutil.copytree(out / exchange.PART, tmp_path / "killed")
            raise KeyboardInterrupt

    out = tmp_path / "a"
    with pytest.raises(sweep.Interrupted):
        sweep.run(scenario(), out=out, backend=Sketch(), executor=(killed := Killed()))
    shutil.rmtree(out)
    out.mkdir()
    shutil.copytree(tmp_path / "killed", out / exchange.PART)

    class Next(Elsewhere):
        def perform(self, task, batches, scratch):
            # This worker belongs to the interrupted sweep, whose folder was deleted. So its files are lost.
            late = killed.task(killed.late)
            assert late.segments
            assert late.error is None
            yield from super().perform(task, batches, scratch)

    sweep.run(scenario(), out=out, backend=Sketch(), executor=Next(), resume=True)
    assert files(out) == local


def test_a_clock_needs_threads():
    with pytest.raises(NarrowsError, match=r"^clock: found executor elsewhere, expected local$"):
        sweep.run(scenario(), backend=Sketch(), executor=Elsewhere(), clock=lambda *_: None)


@pytest.mark.parametrize("name", ["kernel", "vm"])
def test_real_stacks_share_one_machine(name):
    backend = Sketch()
    backend.name = name
    line = f"^executor: found elsewhere with runs on {name}, expected local, because real stacks share one"
    with pytest.raises(NarrowsError, match=line):
        sweep.run(scenario(), backend=backend, executor=Elsewhere())


@pytest.mark.parametrize("name", ["", "Ray", "ray:", "local:2", "slurm:x", "dask"])
def test_a_wrong_executor_is_one_line(name):
    line = r"^executor: found '.*', expected local, processes, ray, ray:ADDRESS or slurm$"
    with pytest.raises(NarrowsError, match=line):
        executors.named(name)


@pytest.mark.parametrize(("name", "module"), [("ray", "ray"), ("ray:a:1", "ray"), ("slurm", "submitit")])
def test_an_executor_whose_extra_is_missing_names_it(name, module, monkeypatch):
    monkeypatch.setattr(extras, "missing", lambda extra: list(extras.MODULES[extra]))
    extra = name.split(":")[0]
    line = f"executor {extra}: {module} not installed; try: pip install 'narrows[{extra}]'"
    with pytest.raises(extras.MissingExtraError) as caught:
        executors.named(name)
    assert str(caught.value) == line


def test_executors_of_this_machine_have_as_many_slots_as_jobs():
    assert isinstance(executors.named("local", 3), Threads) and executors.named("local", 3).slots == 3
    assert isinstance(executors.named("processes", 3), Processes)
    assert executors.named("processes").slots == os.cpu_count()


def test_the_option_of_real_stacks_is_local():
    assert options.executor("local", 2, "kernel") is None
    with pytest.raises(NarrowsError, match=r"^--executor: found ray with --on vm, expected local"):
        options.executor("ray", 2, "vm")


def test_the_progress_names_hosts_and_failures(capsys, monkeypatch):
    now = [10.0]
    monkeypatch.setattr("narrows.cli.progress.time.monotonic", lambda: now[0])
    lines = Lines("demo", 2.0)
    now[0] += 4
    lines.hosts("b", 30, 0)
    lines.hosts("a", 10, 0)
    lines(40, 100)
    lines.hosts("a", 9, 1)
    lines(49, 100)
    lines(50, 100)
    assert capsys.readouterr().err.splitlines() == [
        "demo: 40 of 100 runs, 10 runs/s, 0 failed (a 10, b 30), 6 s left",
        "demo: 50 of 100 runs, 12.2 runs/s, 1 failed (a 19 (1 failed), b 30), 5 s left",
    ]


def test_of_many_hosts_some_are_named():
    hosts = Hosts()
    assert str(hosts) == ""
    for i in range(20):
        hosts(f"node-{i:02}", 1, 0)
    assert str(hosts).endswith("node-06 1, node-07 1, 12 more hosts)")


def test_processes_give_the_tables_of_threads_also_for_controllers_in_python(tmp_path):
    simulator = pytest.importorskip("narrows.backends.sim").Simulator
    text = TEXT.replace('cc = "cubic"', 'cc = "fixed"').replace("seeds = 4", "seeds = 2")
    for name in ("local", "processes"):
        backend = simulator({"fixed": Fixed})
        sweep.run(loads(text), out=tmp_path / name, backend=backend, executor=name, jobs=2)
    assert files(tmp_path / "processes") == files(tmp_path / "local")
    assert len(files(tmp_path / "local")) > 10


class Fixed:
    def on_ack(self, ack, window):
        window.cwnd = 10

    def on_congestion(self, event, window):
        pass


class Endless(Sketch):
    """Writes its process id, and waits forever."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, plan):
        (self.folder / str(os.getpid())).touch()
        threading.Event().wait()


def test_ctrl_c_ends_processes_at_once(tmp_path):
    (tmp_path / "pids").mkdir()

    def interrupt():
        while not list((tmp_path / "pids").iterdir()):
            threading.Event().wait(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(sweep.Interrupted, match=f"0 of {RUNS}"):
        sweep.run(scenario(), out=tmp_path / "a", backend=Endless(tmp_path / "pids"), executor=Processes(1))
    (pid,) = (tmp_path / "pids").iterdir()
    assert not Path(f"/proc/{pid.name}").exists()
    assert not (tmp_path / "a").exists()
    assert not multiprocessing.active_children()


def test_a_process_that_dies_is_one_line(tmp_path):
    with pytest.raises(
        NarrowsError,
        match=r"^executor processes: found a worker that died, e\.g\. because memory is exhausted$",
    ):
        sweep.run(scenario(), out=tmp_path / "a", backend=Dying(), executor=Processes(1))
    assert not (tmp_path / "a").exists()


class PeculiarError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Raising(Sketch):
    def run(self, plan):
        raise PeculiarError(1, 2)


def test_an_exception_that_cannot_be_pickled_arrives_as_text(tmp_path):
    with pytest.raises(NarrowsError, match=r"^PeculiarError: 1 and 2$"):
        sweep.run(scenario(), out=tmp_path / "a", backend=Raising(), executor=Processes(1))


class Dying(Sketch):
    def run(self, plan):
        os.kill(os.getpid(), signal.SIGKILL)


def test_results_of_an_executor_are_readable(tmp_path, local):
    sweep.run(scenario(), out=tmp_path / "a", backend=Sketch(), executor=Elsewhere(), formats=("parquet",))
    assert Results.read(tmp_path / "a").flows.num_rows == 2 * RUNS


@pytest.mark.parametrize(
    "words",
    [
        ("run", "demo.toml", "--out", "o"),
        (
            "matrix",
            "cubic",
            "bbr",
            "--buffer",
            "1bdp",
            "--seeds",
            "1",
            "--duration",
            "2s",
            "--no-figures",
            "--out",
            "o",
        ),
        ("study", "brf", "--quick", "--only", "E1", "--seeds", "1", "--no-figures", "--out", "o"),
    ],
    ids=lambda words: words[0],
)
def test_commands_give_their_runs_to_the_executor(narrows, tmp_path, monkeypatch, words):
    executor = Elsewhere()
    monkeypatch.setattr(executors, "named", lambda name, jobs: executor)
    monkeypatch.setattr(sweep, "simulator", Sketch)
    monkeypatch.chdir(tmp_path)
    Path("demo.toml").write_text(TEXT)
    code, _, err = narrows(*words, "--executor", "processes")
    assert code == 0, err
    assert executor.batches
