"""Datasets on a local S3 server, which some tests kill and restart."""

import itertools
import re
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from narrows import sweep
from narrows.errors import OutputError
from narrows.executors.local import Processes
from narrows.results.datasets import store
from narrows.results.datasets.objects import Objects
from narrows.results.results import Results
from object_store import BUCKET, Server, free_port
from sketch import Sketch
from test_datasets import AWKWARD, NAMES, RUNS, TEXT, assert_equal, begun, put_runs, scenario, start_and_kill
from test_sweep import same, stop_after

pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")
_numbers = itertools.count()
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DIE_AT = 9
"""The server kills itself during the upload of the ninth Parquet file. The sweep writes more files."""
DIE_LATER_AT = 20
"""Like `DIE_AT`, but for two workers that write at the same time. A segment has six files, so at least one
segment is complete before this upload.
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server for all tests that do not kill it."""
    one = Server(free_port(), tmp_path_factory.mktemp("s3") / "journal")
    one.start()
    yield one
    one.kill()


@pytest.fixture
def mortal(tmp_path, monkeypatch):
    one = Server(free_port(), tmp_path / "journal")
    use(one, monkeypatch)
    yield one
    one.kill()


def use(server, monkeypatch):
    """Makes the S3 clients of this process and of its children use this server."""
    for name, value in {
        "AWS_ENDPOINT_URL": server.address,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()


def try_only(monkeypatch, times):
    """Sets the number of attempts of an S3 request."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", str(times))
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def url(shared, monkeypatch):
    use(shared, monkeypatch)
    return f"s3://{BUCKET}/test-{next(_numbers)}"


def test_the_tables_of_a_dataset_are_those_of_a_folder(tmp_path, url, backend):
    folder = sweep.run(scenario(), out=tmp_path / "local", backend=backend)
    assert_equal(folder, sweep.run(scenario(), out=url, backend=backend))
    found = Objects(url).names("flows")
    assert len({name.rpartition("/")[0] for name in found}) == 4
    for name in NAMES:
        lazy = Results.read(url).scan(name).collect().sort("run", maintain_order=True)
        assert same(
            lazy.select(folder.columns(name)).to_arrow().cast(folder.table(name).schema), folder.table(name)
        )


def test_workers_in_processes_write_the_dataset(tmp_path, url):
    text = TEXT.replace('name = "demo"', 'name = "demo"\nduration = "2s"')
    folder = sweep.run(scenario(text), out=tmp_path / "local", backend=Sketch())
    assert_equal(folder, sweep.run(scenario(text), out=url, backend=Sketch(), executor=Processes(2)))


def test_an_interrupted_sweep_continues(url, backend, monkeypatch):
    monkeypatch.setattr(store, "SEGMENT_SECONDS", 0.0)
    with pytest.raises(sweep.Interrupted):
        sweep.run(scenario(), out=url, backend=backend, jobs=1, progress=stop_after(5))
    results = sweep.run(scenario(), out=url, backend=backend, resume=True)
    assert len(backend.plans) == RUNS
    assert_equal(sweep.run(scenario(), backend=backend), results)


def test_a_killed_sweep_continues(url, backend):
    start_and_kill(url, lambda: len(Objects(url).names("runs")) >= 3)
    kept = len(Results.read(url).runs)
    assert 3 <= kept < RUNS
    results = sweep.run(scenario(), out=url, backend=backend, resume=True)
    assert len(backend.plans) == RUNS - kept
    assert_equal(sweep.run(scenario(), backend=backend), results)


def test_all_values_of_factors_survive_the_path(url):
    points = [{"flows.0.cc": text, "y": number} for text in AWKWARD for number in (0.1, 2.0)]
    put_runs(url, points)
    results = Results.read(url)
    assert [{key: row[key] for key in points[0]} for row in results.runs.to_pylist()] == points
    assert results.scan("flows").sort("run").select(list(points[0])).collect().to_dicts() == points


def test_one_of_two_simultaneous_sweeps_is_refused(url, backend, monkeypatch):
    begun(url, backend)
    monkeypatch.setattr(store, "read_metadata", lambda objects: ({}, None))
    with pytest.raises(OutputError, match="another sweep has started at this URL, expected none"):
        begun(url, backend)


def test_polars_and_duckdb_read_the_files_themselves(shared, url, backend):
    duckdb = pytest.importorskip("duckdb")
    sweep.run(scenario(), out=url, backend=backend)
    counts = {("1bdp", "cubic"): 6, ("1bdp", "reno"): 6, ("2bdp", "cubic"): 6, ("2bdp", "reno"): 6}
    frame = pl.scan_parquet(
        f"{url}/flows/**/*.parquet",
        hive_partitioning=True,
        storage_options={"aws_endpoint_url": shared.address, "aws_allow_http": "true"},
    )
    rows = frame.group_by("topology.queue", "flows.0.cc").len().collect().rows()
    assert {row[:2]: row[2] for row in rows} == counts
    database = duckdb.connect()
    database.register_filesystem(s3fs.S3FileSystem())
    rows = database.sql(
        f"""
        SELECT "topology.queue", "flows.0.cc", count(*)
        FROM read_parquet('{url}/flows/*/*/*.parquet', hive_partitioning = true) GROUP BY ALL
        """
    ).fetchall()
    assert {row[:2]: row[2] for row in rows} == counts


def test_the_example_of_the_guide_runs(url, backend):
    s3fs.S3FileSystem().mkdir("bucket")
    sweep.run(scenario(), out="s3://bucket/my", backend=backend)
    page = Path(__file__).parents[2] / "docs/how-to/clusters.md"
    (example,) = (block for block in BLOCK.findall(page.read_text()) if "s3://bucket/my" in block)
    found = {}
    exec(compile(example, str(page), "exec"), found)
    assert_equal(found["results"], sweep.run(scenario(), backend=backend))


def test_a_sweep_survives_a_restart_of_the_server(mortal, backend, monkeypatch):
    try_only(monkeypatch, 12)
    mortal.start(die_at=DIE_AT)
    back = threading.Thread(target=lambda: (mortal.wait(), mortal.start()))
    back.start()
    try:
        results = sweep.run(scenario(), out=f"s3://{BUCKET}/x", backend=backend)
    finally:
        back.join()
    assert mortal.starts == 2
    assert len(backend.plans) == RUNS
    assert_equal(sweep.run(scenario(), backend=backend), results)


@pytest.mark.parametrize("executor", [None, "processes"])
def test_a_sweep_fails_without_its_server_and_reuse_continues_it(mortal, monkeypatch, executor):
    monkeypatch.setattr(store, "SEGMENT_SECONDS", 0.0)
    try_only(monkeypatch, 2)
    url = f"s3://{BUCKET}/x"
    maker = None if executor is None else Processes(2)
    text = TEXT.replace('name = "demo"', 'name = "demo"\nduration = "2s"')
    mortal.start(die_at=DIE_LATER_AT)
    with pytest.raises(
        OutputError, match=f"^{url}: found no answer of the store .*, expected one; continue a"
    ):
        sweep.run(scenario(text), out=url, backend=Sketch(), executor=maker, jobs=1)
    mortal.wait()
    mortal.start()
    kept = Results.read(url).runs["run"].to_pylist()
    assert 0 < len(kept) < RUNS
    results = sweep.run(scenario(text), out=url, backend=Sketch(), resume=True)
    assert_equal(sweep.run(scenario(text), backend=Sketch()), results)


def command(*words):
    return subprocess.run(
        [sys.executable, "-m", "narrows", *words], capture_output=True, text=True, check=False
    )


def test_the_command_ends_with_one_line_while_the_server_is_away(mortal, tmp_path, monkeypatch):
    pytest.importorskip("narrows._native")
    try_only(monkeypatch, 2)
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(TEXT.replace('name = "demo"', 'name = "demo"\nduration = "1s"'))
    url = f"s3://{BUCKET}/x"
    mortal.start(die_at=DIE_AT)
    away = command("run", "my.toml", "--out", url)
    assert away.returncode == 2 and away.stdout == ""
    assert f"{url}: found no answer of the store" in away.stderr.splitlines()[-1]
    assert "Traceback" not in away.stderr
    reading = command("compare", url, url)
    assert reading.returncode == 2 and len(reading.stderr.splitlines()) == 1
    mortal.start()
    back = command("run", "my.toml", "--reuse", "--out", url)
    assert back.returncode == 0, back.stderr
    assert back.stdout.endswith(f"tables in {url}\n")
    assert command("run", "my.toml", "--out", "here").returncode == 0
    assert_equal(Results.read("here"), Results.read(url))


def test_a_bucket_that_does_not_exist_costs_one_line(url, backend):
    for call in (
        lambda: sweep.run(scenario(), out="s3://nowhere/x", backend=backend),
        lambda: Results.read("s3://nowhere/x"),
    ):
        with pytest.raises(OutputError) as error:
            call()
        assert str(error.value) == "s3://nowhere/x: found no bucket 'nowhere', expected one that exists"
    assert not backend.plans


def test_missing_credentials_cost_one_line(url, backend, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(OutputError) as error:
        sweep.run(scenario(), out=url, backend=backend)
    expected = (
        "found no credentials for the store, expected them in the environment or in the "
        "configuration files of the store's tools"
    )
    assert str(error.value) == f"{url}: {expected}"
    assert not backend.plans
