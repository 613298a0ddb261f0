"""Sweeps and their results, in memory and on disk."""

import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import narrows
import pytest
from narrows import sweep
from narrows.errors import OutputError, ScenarioError
from narrows.results import exchange, segments, tables
from narrows.results.results import Results
from narrows.results.store import Folder
from narrows.results.tables import SCHEMAS
from narrows.scenario.load import loads
from texts import TWO_FLOWS

TEXT = f"""
name = "demo"{TWO_FLOWS}[sweep]
seeds = 3
[sweep.vary]
"topology.queue" = ["1bdp", "2bdp"]
"""
ONE_POINT = TEXT.split("[sweep]", maxsplit=1)[0]


def scenario():
    return loads(TEXT)


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.csv"
    }


def same(a, b):
    """Whether two tables have the same columns and values, where NaN is equal to NaN."""
    return a.schema == b.schema and a.to_pandas().equals(b.to_pandas())


def test_two_sweeps_give_the_same_bytes(tmp_path, backend):
    sweep.run(scenario(), out=tmp_path / "a", backend=backend, jobs=1)
    sweep.run(scenario(), out=tmp_path / "b", backend=backend, jobs=4)
    a, b = files(tmp_path / "a"), files(tmp_path / "b")
    assert a == b
    assert {f"{name}.{suffix}" for name in ("runs", "flows", "links") for suffix in ("csv", "parquet")} < set(
        a
    )
    assert not (tmp_path / "a" / "runs").exists()


def test_memory_and_disk_agree(tmp_path, backend):
    memory = sweep.run(scenario(), backend=backend)
    disk = sweep.run(scenario(), out=tmp_path / "a", backend=backend)
    again = Results.read(tmp_path / "a")
    for name in ("runs", *SCHEMAS):
        assert same(memory.table(name), disk.table(name)), name
        assert same(disk.table(name), again.table(name)), name


def test_runs_have_columns_for_their_factors(backend):
    runs = sweep.run(scenario(), backend=backend).runs.to_pydict()
    assert runs["run"] == list(range(6))
    assert runs["topology.queue"] == ["1bdp"] * 3 + ["2bdp"] * 3
    assert runs["seed"] == [1, 2, 3] * 2
    assert runs["packet_hops"] == [20] * 6


def test_frames(backend):
    results = sweep.run(scenario(), backend=backend)
    assert list(results.pandas("flows")["cc"][:2]) == ["cubic", "bbr"]
    assert results.polars("flows").height == 12
    assert results.flows.schema.field("retransmits").type == SCHEMAS["flows"].field("retransmits").type
    with pytest.raises(OutputError, match="nearest is 'flows'"):
        results.table("flow")


def test_metadata_tells_one_trace_from_another(tmp_path, backend):
    text = TEXT.replace('rate = "10mbit"', 'trace = {file = "t"}')
    (tmp_path / "t").write_text("0\n10\n")
    metadata = sweep.run(loads(text, str(tmp_path / "x.toml")), backend=backend).metadata
    assert metadata["traces"] == {"t": hashlib.sha256(b"0\n10\n").hexdigest()}


def test_metadata_holds_the_scenario_and_no_clock(tmp_path, backend):
    sweep.run(scenario(), out=tmp_path, backend=backend)
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    assert metadata["warmup_s"] == 3.0
    assert metadata["runs"][4] == {"run": 4, "seed": 2, "topology.queue": "2bdp"}
    assert narrows.Scenario(**metadata["scenario"]) == scenario()


def test_results_have_a_readable_repr(backend, tmp_path):
    assert repr(sweep.run(loads(ONE_POINT), backend=backend)) == "<Results of 'demo': 1 run, in memory>"
    kept = sweep.run(scenario(), backend=backend, out=tmp_path / "out")
    assert repr(kept).endswith(f"in {tmp_path / 'out'}>") and f": {len(kept.runs)} runs, " in repr(kept)


def test_a_sweep_that_fails_at_once_leaves_nothing(tmp_path, backend):
    backend.fail_seed = 1
    with pytest.raises(ScenarioError, match="refused"):
        sweep.run(scenario(), out=tmp_path / "a", backend=backend, jobs=1)
    assert not (tmp_path / "a").exists()


def test_a_wrong_point_of_a_sweep_writes_nothing(tmp_path, backend):
    text = TEXT.replace('["1bdp", "2bdp"]', '["1bdp", "x"]')
    with pytest.raises(ScenarioError, match=r"sweep\.vary: topology\.queue"):
        sweep.run(loads(text), out=tmp_path / "a", backend=backend)
    text = TEXT.replace('"topology.queue" = ["1bdp", "2bdp"]', '"flows.1.cc" = ["bbr", "bbx"]')
    with pytest.raises(ScenarioError, match="congestion controller"):
        sweep.run(loads(text), out=tmp_path / "a", backend=backend)
    assert not (tmp_path / "a").exists()
    assert backend.plans == []


def test_an_interrupted_sweep_leaves_finished_runs(tmp_path, backend):
    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(scenario(), out=tmp_path, backend=backend, jobs=1, progress=stop)
    assert backend.cancelled.is_set()
    results = Results.read(tmp_path)
    assert results.runs["run"].to_pylist() == [0, 1]
    assert len(results.flows) == 4
    assert same(caught.value.results.flows, results.flows)


def test_a_run_that_fails_keeps_the_finished_ones(tmp_path, backend):
    backend.fail_seed = 3
    with pytest.raises(ScenarioError, match="refused"):
        sweep.run(scenario(), out=tmp_path, backend=backend, jobs=1)
    assert Results.read(tmp_path).runs["run"].to_pylist() == [0, 1]


def test_a_folder_with_other_things_is_left_alone(tmp_path, backend):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match="found other files"):
        sweep.run(scenario(), out=tmp_path, backend=backend)
    with pytest.raises(OutputError, match="found a file"):
        sweep.run(scenario(), out=tmp_path / "thesis.tex", backend=backend)
    assert files(tmp_path) == {"thesis.tex": b"x"}
    with pytest.raises(OutputError, match=r"found no readable metadata\.json"):
        Results.read(tmp_path)


def test_a_full_disk_gives_a_one_line_error(tmp_path, backend, monkeypatch):
    class Full:
        def __init__(self, *_args, **_keys):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables.pq, "ParquetWriter", Full)
    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\)"):
        sweep.run(scenario(), out=tmp_path / "a", backend=backend)
    assert not (tmp_path / "a").exists()


def test_a_disk_that_is_full_from_the_start_holds_nothing_after(tmp_path, backend, monkeypatch):
    def full(path, text, **_keys):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(OutputError, match="No space left"):
        sweep.run(scenario(), out=tmp_path / "a" / "b", backend=backend)
    assert list(tmp_path.iterdir()) == []


FULL = "cannot be written (No space left on device); free some space and run again"


@pytest.mark.parametrize("name", ["signalling.parquet", "timing.csv"])
def test_a_file_that_is_half_written_on_a_full_disk_is_removed(tmp_path, backend, monkeypatch, name):
    def on_a_full_disk(path, content):
        if name in path.name:
            path.write_bytes(content[:4])
            raise OSError(28, "Error writing bytes to file. Detail: [errno 28] No space left on device")
        path.write_bytes(content)

    writer = tables.pq.ParquetWriter

    def merged(path, schema, **keys):
        if Path(path).parent.name == exchange.PART:
            on_a_full_disk(Path(path), b"PAR1 ...")
        return writer(path, schema, **keys)

    monkeypatch.setattr(tables.pq, "ParquetWriter", merged)
    monkeypatch.setattr(
        "pathlib.Path.write_text", lambda path, text, **_: on_a_full_disk(path, text.encode())
    )
    with pytest.raises(OutputError) as caught:
        sweep.run(loads(ONE_POINT), out=tmp_path / "a", seeds=1, backend=backend)
    assert str(caught.value) == f"{tmp_path / 'a'}: {FULL}"
    left = caught.value.left
    assert left.folder == tmp_path / "a" and left.runs.num_rows == 1
    assert len(left.signalling) == 0 and len(left.flows) > 0
    names = {path.name for path in left.folder.iterdir()}
    assert {"metadata.json", "runs"} <= names <= {"metadata.json", "runs", "timing.csv"} - {name}


def test_a_disk_that_becomes_full_keeps_the_segments_that_are_written(tmp_path, backend, monkeypatch):
    put = segments.put

    def on_a_full_disk(stage, runs):
        if 2 in runs:
            raise OSError(28, "No space left on device")
        put(stage, runs)

    monkeypatch.setattr(segments, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(segments, "put", on_a_full_disk)
    with pytest.raises(OutputError) as caught:
        sweep.run(scenario(), out=tmp_path / "a", backend=backend, jobs=1)
    assert str(caught.value) == f"{tmp_path / 'a'}: {FULL}"
    assert caught.value.left.runs["run"].to_pylist() == [0, 1]
    assert not list((tmp_path / "a").rglob(".*"))


def test_runs_that_cannot_be_written_at_the_end_do_not_cost_the_others(tmp_path, backend, monkeypatch):
    store = Folder(tmp_path / "a", sweep.describe(scenario(), [], backend, {"warmup": 0}))
    for run in (0, 1):
        store.add(run, tables.tables(run, 1, {}, {}), 1.0)
        if run == 0:
            store._write()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segments, "put", full)
    assert store.abandon().runs["run"].to_pylist() == [0]


def test_workers_add_runs_while_a_segment_is_being_written(tmp_path, backend, monkeypatch):
    put, begun, added = segments.put, threading.Event(), threading.Event()

    def slow(stage, runs):
        begun.set()
        assert added.wait(30)
        put(stage, runs)

    monkeypatch.setattr(segments, "put", slow)
    store = Folder(tmp_path / "a", sweep.describe(scenario(), [], backend, {"warmup": 0}))
    store.add(0, tables.tables(0, 1, {}, {}), 1.0)
    writer = threading.Thread(target=store._write)
    writer.start()
    assert begun.wait(30)
    store.add(1, tables.tables(1, 2, {}, {}), 1.0)
    added.set()
    writer.join(30)
    assert store.finish(complete=True).runs["run"].to_pylist() == [0, 1]


@pytest.fixture
def small_disk(tmp_path):
    made = []

    def make(kib):
        folder = tmp_path / f"disk-{kib}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("needs root, to mount a small file system")
        made.append(folder)
        return folder

    yield make
    for folder in made:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_results_on_a_small_disk_are_readable_or_absent(small_disk, backend):
    """The size of the disk determines which write fails, so the test tries many sizes."""
    outcomes = set()
    for kib in range(8, 200, 8):
        folder = small_disk(kib) / "a"
        try:
            left = sweep.run(loads(ONE_POINT), out=folder, seeds=1, backend=backend)
        except OutputError as error:
            assert str(error) == f"{folder}: {FULL}"
            left = error.left
            outcomes.add("absent" if left is None else "runs")
        else:
            outcomes.add("complete")
        if left is None:
            assert not folder.exists()
            continue
        assert not list(folder.rglob(".*"))
        assert left.runs.num_rows == 1
        for path in folder.rglob("*.parquet"):
            tables.read(path)
    assert outcomes == {"absent", "runs", "complete"}


def test_an_interrupt_before_any_run_is_finished_leaves_nothing(tmp_path, backend):
    def stop(_plan):
        raise KeyboardInterrupt

    backend.run = stop
    with pytest.raises(sweep.Interrupted, match="0 of 6") as caught:
        sweep.run(scenario(), out=tmp_path / "a", backend=backend, jobs=1)
    assert caught.value.done == 0
    assert list(tmp_path.iterdir()) == []


# Earlier results in the folder


def stop_after(runs):
    def stop(done, total):
        if done == runs:
            raise KeyboardInterrupt

    return stop


@pytest.fixture
def earlier(tmp_path, backend):
    """A folder with earlier results, and its content."""
    folder = tmp_path / "keep"
    sweep.run(scenario(), out=folder, backend=backend)
    (folder / "report.html").write_text("a page")
    (folder / "notes.txt").write_text("a user's")
    (folder / "sim").mkdir()
    (folder / "sim/other.txt").write_text("a user's, too")
    return folder, files(folder)


def other():
    return loads(TEXT.replace('name = "demo"', 'name = "demo"\nseed = 7'))


def test_an_interrupted_run_leaves_earlier_results_as_they_were(earlier, backend):
    def stop(_plan):
        raise KeyboardInterrupt

    folder, before = earlier
    backend.run = stop
    with pytest.raises(sweep.Interrupted):
        sweep.run(other(), out=folder, backend=backend, jobs=1)
    assert files(folder) == before
    assert not (folder / exchange.PART).exists()


def test_finished_runs_of_an_interrupted_sweep_are_kept_next_to_earlier_results(earlier, backend):
    folder, before = earlier
    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(other(), out=folder, backend=backend, jobs=1, progress=stop_after(2))
    assert caught.value.results.folder == folder / "interrupted"
    assert caught.value.results.runs["seed"].to_pylist() == [7, 8]
    now = files(folder)
    assert {name: now[name] for name in before} == before
    assert {name.split("/")[0] for name in now.keys() - before} == {"interrupted"}


def test_so_are_those_of_one_that_failed(earlier, backend):
    folder, before = earlier
    backend.fail_seed = 8
    with pytest.raises(ScenarioError, match="refused") as caught:
        sweep.run(other(), out=folder, backend=backend, jobs=1)
    assert caught.value.left.runs["seed"].to_pylist() == [7]
    now = files(folder)
    assert {name: now[name] for name in before} == before


def test_a_whole_run_replaces_all_of_the_earlier_one(earlier, backend):
    folder, before = earlier
    with pytest.raises(sweep.Interrupted):
        sweep.run(other(), out=folder, backend=backend, jobs=1, progress=stop_after(2))
    sweep.run(other(), out=folder, backend=backend, formats=("parquet",))
    assert set(files(folder)) == {
        "metadata.json",
        "notes.txt",
        "sim/other.txt",
        *(name for name in before if name.endswith(".parquet")),
    }
    assert Results.read(folder).runs["seed"].to_pylist() == [7, 8, 9] * 2


def test_the_next_run_removes_the_files_of_a_killed_run(earlier, backend):
    folder, before = earlier
    (folder / exchange.PART / "runs/.0").mkdir(parents=True)
    sweep.run(scenario(), out=folder, backend=backend)
    del before["report.html"]
    assert files(folder) == before


def test_a_first_run_that_was_killed_is_no_foreign_folder(tmp_path, backend):
    (tmp_path / exchange.PART / "runs").mkdir(parents=True)
    sweep.run(scenario(), out=tmp_path, backend=backend)
    assert Results.read(tmp_path).runs["run"].to_pylist() == list(range(6))


def test_remains_of_a_run_are_no_earlier_results(tmp_path, backend):
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "runs").mkdir()
    with pytest.raises(OutputError, match="found no finished run"):
        Results.read(tmp_path)
    with pytest.raises(sweep.Interrupted):
        sweep.run(scenario(), out=tmp_path, backend=backend, jobs=1, progress=stop_after(1))
    assert Results.read(tmp_path).runs["run"].to_pylist() == [0]


@pytest.mark.parametrize("backend_of_old", ["sim", "kernel"])
@pytest.mark.parametrize("step", range(12))
def test_a_run_killed_while_it_replaces_results_leaves_the_old_or_the_new(tmp_path, step, backend_of_old):
    def make(folder, content, names):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)

    make(tmp_path, "old", ["runs.csv", "flows.csv", "report.html", "logs/0/a.log", "sim/x"])
    make(tmp_path, json.dumps({"backend": backend_of_old}), ["metadata.json"])
    make(tmp_path / exchange.PART, "new", ["metadata.json", "runs.csv", "flows.csv", "links.csv"])
    old = files(tmp_path)
    new = dict.fromkeys(("metadata.json", "runs.csv", "flows.csv", "links.csv"), b"new")
    old = {name: content for name, content in old.items() if exchange.PART not in name}
    if backend_of_old == "sim":
        new["sim/x"] = b"old"

    child = os.fork()
    if child == 0:
        left, rename = [step], Path.rename

        def killed(path, target):
            if path.exists():
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
            return rename(path, target)

        Path.rename = killed
        try:
            exchange.exchange(tmp_path)
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert not (tmp_path / "metadata.json").exists() or step == 0 or files(tmp_path) == new
    exchange.settle(tmp_path)
    making_room = 5 if backend_of_old == "sim" else 6
    assert files(tmp_path) == (old if step <= making_room else new)
    assert not any((tmp_path / name).exists() for name in exchange.ASIDE)


def test_two_runs_do_not_write_into_one_folder(tmp_path, backend):
    run = backend.run

    def meddling(plan):
        with pytest.raises(OutputError, match="keep: another run is writing there"):
            sweep.run(scenario(), out=tmp_path / "keep", backend=type(backend)())
        return run(plan)

    backend.run = meddling
    sweep.run(scenario(), out=tmp_path / "keep", backend=backend, jobs=1)
    assert len(Results.read(tmp_path / "keep").runs) == 6


def test_ctrl_c_again_does_not_cut_a_clean_up_short(tmp_path, backend):
    cleaned = []

    def run(_plan):
        time.sleep(0.1)  # meanwhile, the pool starts
        os.kill(os.getpid(), signal.SIGINT)
        backend.cancelled.wait(10)
        for _ in range(5):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)
        cleaned.append(True)
        raise KeyboardInterrupt

    backend.run = run
    with pytest.raises(sweep.Interrupted):
        sweep.run(scenario(), out=tmp_path / "a", backend=backend, jobs=1)
    assert cleaned == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert list(tmp_path.iterdir()) == []


def test_runs_go_side_by_side(backend):
    together = threading.Barrier(3, timeout=10)
    run = backend.run
    backend.run = lambda plan: (together.wait(), run(plan))[1]
    assert len(sweep.run(scenario(), backend=backend, jobs=3).runs) == 6


def test_a_killed_sweep_leaves_no_disturbed_run_marked_sound(backend, tmp_path, monkeypatch):
    """A run is finished when its folder is renamed. So its soundness must be stored before that."""
    seen = []

    def rename(path: Path, target: Path) -> None:
        if target.parent.name == "runs" and target.name.isdigit():
            told = json.loads((target.parents[1] / "metadata.json").read_text())
            seen.extend(told["soundness"][str(run)]["sound"] for run in segments.runs_of(path))
        path.replace(target)

    run = backend.run
    backend.run = lambda plan: run(plan) | {"soundness": {"sound": False, "reasons": ["busy"]}}
    monkeypatch.setattr(Path, "rename", rename)
    sweep.run(loads(TEXT), backend=backend, out=tmp_path / "out", seeds=2, jobs=1)
    assert seen == [False] * 4


@pytest.mark.parametrize("kind", [str, Path])
def test_a_run_takes_the_path_of_a_scenario(tmp_path, backend, kind):
    path = tmp_path / "my.toml"
    path.write_text(TEXT)
    results = narrows.run(kind(path), backend=backend)
    assert same(results.flows, narrows.run(scenario(), backend=backend).flows)
    with pytest.raises(ScenarioError, match=r"none\.toml: found no file"):
        narrows.run(kind(tmp_path / "none.toml"), backend=backend)
