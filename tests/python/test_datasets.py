"""Datasets: layout, commits and reading, without a server."""

import itertools
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import narrows
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import sweep
from narrows.errors import NarrowsError, OutputError
from narrows.executors import Job
from narrows.executors.local import Processes
from narrows.executors.worker import Apart
from narrows.results import segments as local
from narrows.results import tables
from narrows.results.datasets import layout, objects, store
from narrows.results.datasets.layout import Layout
from narrows.results.datasets.objects import Objects
from narrows.results.datasets.segments import Writer, committed
from narrows.results.datasets.store import Dataset
from narrows.results.datasets.urls import url_of
from narrows.results.results import Results
from narrows.scenario.load import loads
from narrows.version import release
from sketch import Sketch
from test_sweep import same, stop_after
from texts import TWO_FLOWS

NAMES = ("runs", *tables.SCHEMAS)
TEXT = f"""
name = "demo"{TWO_FLOWS}[sweep]
seeds = 3
[sweep.vary]
"topology.queue" = ["1bdp", "2bdp"]
"flows.0.cc" = ["cubic", "reno"]
"""
RUNS = 12


def scenario(text=TEXT):
    return loads(text)


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/remote"


@pytest.fixture
def at_once(monkeypatch):
    """Each run is written as soon as it is finished."""
    monkeypatch.setattr(store, "SEGMENT_SECONDS", 0.0)


def assert_equal(a, b):
    """Checks that two results have the same metadata, and the same rows in the same order."""
    for name in NAMES:
        assert same(a.table(name), b.table(name)), name
    assert a.metadata == b.metadata


def objects_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def interrupt(url, backend, after):
    with pytest.raises(sweep.Interrupted) as stopped:
        sweep.run(scenario(), out=url, backend=backend, jobs=1, progress=stop_after(after))
    return stopped.value


def test_the_tables_of_a_dataset_are_those_of_a_folder(tmp_path, url, backend):
    folder = sweep.run(scenario(), out=tmp_path / "local", backend=backend)
    written = sweep.run(scenario(), out=url, backend=backend)
    assert_equal(folder, written)
    assert_equal(folder, narrows.Results.read(url))
    for name in NAMES:
        assert written.columns(name) == folder.columns(name), name
        for column in folder.columns(name):
            again = Results.read(url)
            assert again.column(name, column).to_pylist() == pytest.approx(
                folder.column(name, column).to_pylist(), nan_ok=True
            )


def test_the_path_has_the_factors_and_files_have_no_column_for_them(tmp_path, url, backend):
    sweep.run(scenario(), out=url, backend=backend)
    found = objects_in(tmp_path / "remote")
    partitions = {path.rpartition("/")[0] for path in found if path.startswith("flows/")}
    assert partitions == {
        f"flows/topology.queue={queue}/flows.0.cc={cc}"
        for queue in ("1bdp", "2bdp")
        for cc in ("cubic", "reno")
    }
    assert {path.partition("/")[0] for path in found} == {
        *("flows", "links", "runs"),  # a table without rows has no files
        *("metadata.json", "timing.csv"),
    }
    first = next(path for path in found if path.startswith("runs/"))
    assert pa.parquet.read_schema(tmp_path / "remote" / first).names[:2] == ["run", "seed"]


def test_metadata_is_written_first_and_last_and_ends_as_complete(url, backend, monkeypatch):
    written = []
    original = Objects.write
    monkeypatch.setattr(
        Objects, "write", lambda self, name, data: (written.append(name), original(self, name, data))
    )
    sweep.run(scenario(), out=url, backend=backend)
    assert written[0] == written[-1] == "metadata.json"
    for name in {name.partition("/")[2] for name in written if name.startswith("flows/")}:
        assert written.index(f"runs/{name}") > max(
            written.index(other) for other in written if other.endswith(name) and not other.startswith("runs")
        )
    facts = json.loads(Objects(url).read("metadata.json"))["dataset"]
    assert facts["complete"] is True and facts["partitions"] == ["topology.queue", "flows.0.cc"]


def test_lazy_reading_has_typed_factors_and_reads_only_its_partitions(url, backend):
    text = TEXT.replace('"flows.0.cc" = ["cubic", "reno"]', '"topology.loss" = [0, 0.5, 0.25]')
    results = sweep.run(scenario(text), out=url, backend=backend)
    kinds = results.runs.schema.field("topology.loss").type, results.runs.schema.field("topology.queue").type
    assert kinds == (pa.float64(), pa.string())
    for name in NAMES:
        schema = results.dataset(name).schema
        assert (schema.field("topology.loss").type, schema.field("topology.queue").type) == kinds, name
    frame = results.scan("flows")
    assert isinstance(frame, pl.LazyFrame)
    chosen = frame.filter(pl.col("topology.loss") == 0.25).select("run").collect()["run"].to_list()
    expected = [row["run"] for row in results.runs.to_pylist() if row["topology.loss"] == 0.25]
    assert sorted(set(chosen)) == expected
    fragments = list(results.dataset("flows").get_fragments(ds.field("topology.loss") == 0.25))
    assert 0 < len(fragments) < len(list(results.dataset("flows").get_fragments()))


def test_a_folder_and_memory_are_datasets_of_arrow_too(tmp_path, backend):
    folder = sweep.run(scenario(), out=tmp_path, backend=backend)
    memory = sweep.run(scenario(), backend=backend)
    for results in (folder, memory):
        for name in NAMES:
            assert same(results.dataset(name).to_table(), folder.table(name)), name
    with pytest.raises(OutputError, match="found table 'flow'"):
        folder.dataset("flow")


AWKWARD = ["a/b", "x=y", "100%", "%2F", "ü ñ", "#?*[z]", "..", "a&b+c", "\"q'", "a\\b", " ", "NULL"]


def put_runs(url, factors, seeds=1):
    """Write a dataset with a point for each entry of `factors`. Returns its metadata."""
    runs = [
        {"run": number, "seed": seed + 1, **point}
        for number, (point, seed) in enumerate(itertools.product(factors, range(seeds)))
    ]
    metadata = {"scenario": {"name": "x"}, "factors": list(factors[0]), "runs": runs}
    place = Dataset(url, metadata)
    for run in runs:
        values = {key: run[key] for key in factors[0]}
        flows = {"flow": [0], "goodput_bps": [float(run["run"])]}
        place.add(run["run"], tables.tables(run["run"], run["seed"], values, {"flows": flows}), 0.1)
    place.finish(complete=True)
    return metadata


def test_all_values_of_factors_survive_the_path(tmp_path, url):
    points = [{'flows."a/b".x': text, "y": number} for text in AWKWARD for number in (0.1, 2.0, 1e-9, 1e300)]
    put_runs(url, points)
    results = Results.read(url)
    assert [{key: row[key] for key in points[0]} for row in results.runs.to_pylist()] == points
    lazy = results.scan("flows").sort("run").select(list(points[0])).collect().to_dicts()
    assert lazy == points


@pytest.mark.parametrize("name", ["name", "cc"])
def test_a_factor_with_the_name_of_a_column_is_not_in_the_path(url, name):
    metadata = put_runs(url, [{name: "a"}, {name: "b"}])
    assert Layout.of(metadata).keys == ()
    assert Results.read(url).runs[name].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__", "x" * 300])
def test_a_value_that_no_path_can_hold_stays_a_column(url, value):
    metadata = put_runs(url, [{"x": value, "y": "1"}, {"x": "b", "y": "2"}])
    assert Layout.of(metadata).keys == ("y",)
    assert Results.read(url).runs["x"].to_pylist() == [value, "b"]


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_partitions_never_multiply_the_segments(sizes, seeds):
    names = [f"f{i}" for i in range(len(sizes))]
    points = list(itertools.islice(itertools.product(*(range(size) for size in sizes)), 3000))
    runs = [
        {"run": i * seeds + seed, "seed": seed, **dict(zip(names, map(str, point), strict=True))}
        for i, point in enumerate(points)
        for seed in range(seeds)
    ]
    chosen = Layout.of({"factors": names, "runs": runs})
    # The number of folders is limited, because each border between two folders can split a segment.
    assert len(chosen.folders) <= layout.MOST_PARTITIONS
    for run in random.Random(1).sample(runs, min(50, len(runs))):
        wanted = "/".join(layout.part(key, run[key]) for key in chosen.keys)
        assert chosen.folder(run["run"]) == wanted


def test_a_factor_with_many_values_is_not_in_the_path():
    runs = [
        {"run": i, "seed": 1, "cc": "cubic", "flows.0.cc": cc, "topology.rate": str(rate)}
        for i, (cc, rate) in enumerate(itertools.product(("cubic", "reno"), range(5000)))
    ]
    chosen = Layout.of({"factors": ["flows.0.cc", "topology.rate"], "runs": runs})
    assert chosen.keys == ("flows.0.cc",)
    assert chosen.divide(range(10_000)) == {
        "flows.0.cc=cubic": list(range(5000)),
        "flows.0.cc=reno": list(range(5000, 10_000)),
    }


def test_an_interrupted_sweep_continues_without_repeating_a_run(tmp_path, url, backend, at_once):
    folder = sweep.run(scenario(), out=tmp_path / "local", backend=backend)
    backend.plans.clear()
    stopped = interrupt(url, backend, 5)
    assert str(stopped.results.place) == url
    assert stopped.results.runs["run"].to_pylist() == list(range(stopped.done))
    done = len(backend.plans)
    results = sweep.run(scenario(), out=url, backend=backend, resume=True)
    assert 5 <= done < RUNS and len(backend.plans) == RUNS
    assert_equal(folder, results)
    assert len(sweep.run(scenario(), out=url, backend=backend, resume=True).runs) == RUNS
    assert len(backend.plans) == RUNS


KILLED = """
import sys
sys.path[:0] = {paths!r}
from narrows import sweep
from narrows.results.datasets import store
store.SEGMENT_SECONDS = 0.0
from conftest import FakeBackend
import test_datasets
class Slow(FakeBackend):
    def run(self, plan):
        import time
        time.sleep(0.1)
        return super().run(plan)
sweep.run(test_datasets.scenario(), out={url!r}, backend=Slow(), jobs=1)
"""


def start_and_kill(url, is_time):
    """Start a sweep in a process, and kill it when `is_time()` returns true."""
    paths = [str(Path(__file__).parent), *sys.path]
    child = subprocess.Popen([sys.executable, "-c", KILLED.format(paths=paths, url=url)])
    try:
        while not is_time():
            assert child.poll() is None, "the sweep ended before it was killed"
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()


def test_a_killed_sweep_continues(tmp_path, url, backend):
    remote = tmp_path / "remote"
    start_and_kill(url, lambda: len(list(remote.glob("runs/**/[0-9]*.parquet"))) >= 3)
    kept = len(Results.read(url).runs)
    assert 3 <= kept < RUNS
    results = sweep.run(scenario(), out=url, backend=backend, resume=True)
    assert len(backend.plans) == RUNS - kept
    assert_equal(sweep.run(scenario(), backend=backend), results)
    # A tool that reads all files finds each run exactly once.
    assert sorted(ds.dataset(remote / "runs", partitioning="hive").to_table()["run"].to_pylist()) == list(
        range(RUNS)
    )


def test_workers_in_processes_write_the_dataset(tmp_path, url):
    text = TEXT.replace('name = "demo"', 'name = "demo"\nduration = "2s"')
    folder = sweep.run(scenario(text), out=tmp_path / "local", backend=Sketch())
    results = sweep.run(scenario(text), out=url, backend=Sketch(), executor=Processes(2))
    assert_equal(folder, results)


def begun(url, backend):
    """A dataset without runs, the jobs of all runs, and the tables of all runs."""
    runs = sweep.expand(scenario())
    resolver = sweep.Resolver(backend)
    metadata = sweep.describe(scenario(), runs, backend, sweep.check(runs, resolver, backend))
    jobs = tuple(Job(run.id, run.seed, run.factors, resolver(run.point)) for run in runs)
    made = {
        job.run: tables.tables(job.run, job.seed, job.factors, backend.run({**job.plan, "seed": job.seed}))
        for job in jobs
    }
    return Dataset(url, metadata), jobs, made


def test_a_batch_that_is_repeated_counts_once(url, backend):
    place, jobs, _ = begun(url, backend)
    work = Apart(backend, place.writer, "demo.toml", release())
    backend.plans.clear()
    assert set(work((jobs[:5],)).seconds) == set(work((jobs[:5],)).seconds) == set(range(5))
    assert len(backend.plans) == 5, "the second attempt finds the runs of the first"
    assert Results.read(url).runs["run"].to_pylist() == list(range(5))


def test_runs_in_overlapping_segments_count_once(tmp_path, url, backend):
    place, _, made = begun(url, backend)
    for numbers in ([0, 1, 2], [1, 2], [2], [3, 4], [4, 5]):
        place.writer.put({run: made[run] for run in numbers})
    found = Results.read(url)
    assert found.runs["run"].to_pylist() == [0, 1, 2, 3, 4]
    assert sorted(set(found.flows["run"].to_pylist())) == [0, 1, 2, 3, 4]
    backend.plans.clear()
    results = sweep.run(scenario(), out=url, backend=backend, resume=True)
    assert len(backend.plans) == RUNS - 5
    assert_equal(sweep.run(scenario(), backend=backend), results)
    runs = ds.dataset(tmp_path / "remote/flows", partitioning="hive").to_table()["run"].to_pylist()
    assert sorted(set(runs)) == list(range(RUNS)) and len(runs) == 2 * RUNS


def test_a_worker_that_outlives_its_sweep_changes_nothing(url, backend):
    place, _, made = begun(url, backend)
    results = sweep.run(scenario(), out=url, backend=backend, resume=True)
    place.writer.put({run: made[run] for run in (0, 1)})
    assert_equal(results, Results.read(url))
    with pytest.raises(OutputError, match="another sweep that has taken over"):
        place.finish(complete=True)


def test_a_segment_without_its_table_of_runs_does_not_count(url, backend, monkeypatch):
    place, _, made = begun(url, backend)
    place.writer.put({run: made[run] for run in (0, 1)})
    original = Objects.write

    def fail_at_the_marker(self, name, data):
        if name.startswith("runs/"):
            raise OutputError("the store failed")
        original(self, name, data)

    monkeypatch.setattr(Objects, "write", fail_at_the_marker)
    with pytest.raises(OutputError, match="the store failed"):
        place.writer.put({run: made[run] for run in (3, 4)})
    monkeypatch.undo()
    assert len(Objects(url).names("flows")) == 2
    assert set(Results.read(url).flows["run"].to_pylist()) == {0, 1}
    assert set(Results.read(url).scan("flows").collect()["run"].to_list()) == {0, 1}


@pytest.mark.parametrize("size", [0, 10, 400])
def test_a_marker_that_is_cut_off_does_not_count(tmp_path, url, backend, size):
    place, _, made = begun(url, backend)
    place.writer.put({0: made[0]})
    place.writer.put({3: made[3]})
    marker = next((tmp_path / "remote/runs").rglob("3-*.parquet"))
    marker.write_bytes(marker.read_bytes()[:size])
    assert Results.read(url).runs["run"].to_pylist() == [0]
    results = sweep.run(scenario(), out=url, backend=backend, resume=True)
    assert results.runs["run"].to_pylist() == list(range(RUNS))


def test_a_file_that_is_lost_or_damaged_later_is_an_error(tmp_path, url, backend):
    sweep.run(scenario(), out=url, backend=backend)
    lost = next((tmp_path / "remote/flows").rglob("*.parquet"))
    content = lost.read_bytes()
    lost.write_bytes(content[:100])
    with pytest.raises(OutputError, match="found a damaged file of table flows, expected Parquet"):
        Results.read(url).table("flows")
    lost.unlink()
    with pytest.raises(OutputError, match="found no such object, expected a complete dataset"):
        Results.read(url).table("flows")


def test_files_of_another_sweep_are_not_taken_over(tmp_path, url, backend):
    sweep.run(scenario(), out=url, backend=backend)
    other = scenario(TEXT.replace("seeds = 3", "seeds = 2"))
    for resume in (False, True):
        with pytest.raises(OutputError, match="found results of another sweep, expected none"):
            sweep.run(other, out=url, backend=backend, resume=resume)
    (tmp_path / "remote/metadata.json").unlink()
    with pytest.raises(OutputError, match=r"found tables without metadata.json, expected none"):
        sweep.run(other, out=url, backend=backend)
    place, _, _ = begun(f"{url}2", backend)
    assert committed(Objects(url), place.writer.layout.sweep)
    assert not committed(Objects(url), "0")


def test_a_local_dataset_is_read_by_its_path_and_not_replaced(tmp_path, url, backend):
    results = sweep.run(scenario(), out=url, backend=backend)
    assert_equal(results, Results.read(tmp_path / "remote"))
    with pytest.raises(OutputError, match="found a dataset, expected an empty folder or earlier results"):
        sweep.run(scenario(), out=tmp_path / "remote", backend=backend)
    assert_equal(results, Results.read(url))


def test_results_are_not_replaced(url, backend):
    sweep.run(scenario(), out=url, backend=backend)
    with pytest.raises(
        OutputError, match="found results of this sweep, expected none; continue it with --reuse"
    ):
        sweep.run(scenario(), out=url, backend=backend)


def test_one_of_two_simultaneous_sweeps_is_refused(url, backend, monkeypatch):
    begun(url, backend)
    monkeypatch.setattr(store, "read_metadata", lambda objects: ({}, None))
    with pytest.raises(OutputError, match="another sweep has started at this URL, expected none"):
        begun(url, backend)


def test_a_failed_sweep_without_runs_leaves_nothing(tmp_path, url, backend):
    backend.fail_seed = 1
    with pytest.raises(NarrowsError, match="refused"):
        sweep.run(scenario(), out=url, backend=backend, jobs=1)
    assert objects_in(tmp_path / "remote") == []


def test_a_failed_sweep_keeps_its_finished_runs(url, backend, at_once):
    backend.fail_seed = 2
    with pytest.raises(NarrowsError, match="refused") as failed:
        sweep.run(scenario(), out=url, backend=backend, jobs=1)
    assert failed.value.left.runs["run"].to_pylist() == [0]
    backend.fail_seed = None
    assert len(sweep.run(scenario(), out=url, backend=backend, resume=True).runs) == RUNS


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        (Path("s3://bucket/a"), "s3://bucket/a"),
        ("S3://bucket", "s3://bucket"),
        ("s3://", "s3://"),
        ("file:///tmp/x", "file:///tmp/x"),
        (Path("file:///tmp/x"), "file:///tmp/x"),
        ("results/my", None),
        ("/tmp/a:b", None),
        ("a:b", None),
        ("results/s3:/x", None),
        ("x:/y", None),
    ],
)
def test_urls_are_told_from_paths(place, expected):
    assert url_of(place) == expected


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["run", "my.toml", "--out", "foo://x/y"],
            "foo://x/y: found protocol 'foo', expected one of fsspec, e.g. s3, gs or file",
        ),
        (["run", "my.toml", "--out", "s3://"], "s3://: found no name, expected e.g. s3://bucket/folder"),
        (
            ["run", "my.toml", "--out", "file:///x/y", "--formats", "parquet,csv"],
            "--formats: found parquet,csv, expected parquet, the format of file:///x/y",
        ),
        (
            ["run", "my.toml", "--out", "file:///x/y", "--shard", "1/2"],
            "--shard: found file:///x/y, expected a folder, because narrows merge reads folders",
        ),
        (
            ["run", "my.toml", "--out", "file:///x/y", "--on", "kernel"],
            "--out: found 'file:///x/y', expected a folder, because runs on real stacks also write logs "
            "and a simulation",
        ),
        (
            ["run", "my.toml", "--out", "memory://x/y", "--executor", "processes"],
            "--out: found memory://x/y, expected a place that outlives the command",
        ),
        (
            ["study", "brf", "--out", "s3://x/y"],
            "--out: found 's3://x/y', expected a folder, because a study also writes pages and figures",
        ),
        (
            ["matrix", "cubic", "reno", "--out", "s3://x/y"],
            "--out: found 's3://x/y', expected a folder, because a matrix also writes a page and figures",
        ),
        (
            ["validate", "--out", "s3://x/y"],
            "--out: found 's3://x/y', expected a folder, because a validation also writes pages and figures",
        ),
        (
            ["merge", "s3://x/y", "--out", "z"],
            "PART: found 's3://x/y', expected a folder, because a dataset is never a part of a sweep",
        ),
        (["run", "my.toml", "--cache", "s3://x"], "--cache: found 's3://x', expected a folder"),
        (["report", "file:///x/y"], "--out: found nothing, expected a file for the report of file:///x/y"),
        (
            ["compare", "file:///x/y", "file:///x/z"],
            "file:///x/y: found no metadata.json, expected a dataset of narrows run --out",
        ),
    ],
)
def test_an_invalid_place_gives_a_one_line_error(tmp_path, monkeypatch, narrows, words, line):
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(TEXT)
    assert narrows(*words) == (2, "", f"{line}\n")
    assert objects_in(tmp_path) == ["my.toml"]


@pytest.mark.parametrize(
    ("place", "missing", "line"),
    [
        ("s3://x/y", "s3fs", "s3://x/y: s3fs not installed; try: pip install 'narrows[s3]'"),
        ("gs://x/y", "gcsfs", "gs://x/y: gcsfs not installed; try: pip install 'narrows[gs]'"),
        ("file:///x", "fsspec", "file:///x: fsspec not installed; try: pip install 'narrows[s3]'"),
    ],
)
def test_a_missing_package_costs_one_line(tmp_path, monkeypatch, narrows, place, missing, line):
    from narrows import extras

    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(TEXT)
    original = extras.importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if name == missing else original(name, *rest)
    )
    assert narrows("run", "my.toml", "--out", place) == (2, "", f"{line}\n")


def test_the_commands_read_datasets(tmp_path, narrows, url, backend):
    sweep.run(scenario(), out=url, backend=backend)
    sweep.run(scenario(), out=tmp_path / "local", backend=backend)
    code, out, _ = narrows("diff", url, tmp_path / "local", "--exact")
    assert code == 0 and "bit-for-bit equal" in out
    code, out, _ = narrows("compare", url, tmp_path / "local")
    assert code == 0 and out.startswith(f"A: {url} (fake)")


def test_duckdb_reads_a_dataset(url, backend):
    duckdb = pytest.importorskip("duckdb")
    results = sweep.run(scenario(), out=url, backend=backend)
    flows = results.dataset("flows")
    assert flows is not None
    rows = duckdb.sql(
        'SELECT "flows.0.cc", count(*) FROM flows WHERE "topology.queue" = \'1bdp\' GROUP BY 1 ORDER BY 1'
    ).fetchall()
    assert rows == [("cubic", 6), ("reno", 6)]


def test_a_protocol_without_atomic_writes_gets_renamed_files(tmp_path, url, monkeypatch):
    place = Objects(url)
    place.write("a/b", b"old")
    monkeypatch.setattr(
        type(place._fs), "mv", lambda *args, **kwargs: (_ for _ in ()).throw(OSError(28, "x"))
    )
    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\)"):
        place.write("a/b", b"new")
    assert place.read("a/b") == b"old"
    assert place.names("a") == ["a/b"], "the partial file is not listed"
    assert objects.parquet(pa.table({"a": [1]}))[:4] == b"PAR1"


def test_a_folder_writer_reports_a_failed_write(tmp_path, backend):
    with pytest.raises(OutputError, match="cannot be written"):
        local.Writer(tmp_path / "absent" / "stage").put({0: {"runs": pa.table({"run": [0]})}})
    assert not Writer(f"file://{tmp_path}/x", Layout("s", (), (0,), ("",))).is_written([0])


def test_workers_cannot_share_the_memory_of_the_sweep():
    with pytest.raises(NarrowsError, match="found memory://x/y and executor processes, expected a"):
        sweep.run(scenario(), out="memory://x/y", executor="processes")
