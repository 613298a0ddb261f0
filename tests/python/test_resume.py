"""A sweep continues after an interruption."""

import shutil
import time

import pytest
from narrows import sweep
from narrows.errors import OutputError
from narrows.results import exchange, segments
from narrows.results.results import Results
from test_sweep import TEXT, files, loads, scenario, stop_after

original = segments.Collected.add


def interrupted(folder, backend, after):
    with pytest.raises(sweep.Interrupted):
        sweep.run(scenario(), out=folder, backend=backend, jobs=1, progress=stop_after(after))


def test_the_rest_is_run_and_the_tables_are_those_of_a_sweep_in_one_go(tmp_path, backend):
    sweep.run(scenario(), out=tmp_path / "whole", backend=backend)
    interrupted(tmp_path / "parts", backend, 2)
    backend.plans.clear()
    told = []
    sweep.run(
        scenario(), out=tmp_path / "parts", backend=backend, resume=True, progress=lambda *at: told.append(at)
    )
    assert len(backend.plans) == 4
    assert told[0] == (2, 6) and told[-1] == (6, 6)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_interrupting_twice_keeps_earlier_results(tmp_path, backend):
    sweep.run(loads(TEXT.replace('name = "demo"', 'name = "demo"\nseed = 7')), out=tmp_path, backend=backend)
    interrupted(tmp_path, backend, 2)
    with pytest.raises(sweep.Interrupted):
        sweep.run(scenario(), out=tmp_path, backend=backend, jobs=1, resume=True, progress=stop_after(5))
    assert Results.read(tmp_path / "interrupted").runs["run"].to_pylist() == [0, 1, 2, 3, 4]
    backend.plans.clear()
    assert len(sweep.run(scenario(), out=tmp_path, backend=backend, resume=True).runs) == 6
    assert len(backend.plans) == 1
    assert not (tmp_path / "interrupted").exists()


def test_killed_in_the_middle_of_a_run(tmp_path, backend):
    interrupted(tmp_path / "a", backend, 3)
    # Make the folder that a killed sweep leaves. It has an incomplete run.
    part = tmp_path / "b" / exchange.PART
    part.parent.mkdir()
    shutil.move(tmp_path / "a", part)
    (part / "timing.csv").unlink()
    (part / "runs/.stage-0/3-0").mkdir(parents=True)
    backend.plans.clear()
    results = sweep.run(scenario(), out=tmp_path / "b", backend=backend, resume=True)
    assert results.runs["run"].to_pylist() == list(range(6))
    assert len(backend.plans) == 3


def test_other_runs_are_not_taken_over(tmp_path, backend):
    interrupted(tmp_path, backend, 2)
    backend.plans.clear()
    longer = loads(TEXT.replace('name = "demo"', 'name = "demo"\nduration = "31s"'))
    sweep.run(longer, out=tmp_path, backend=backend, resume=True)
    assert len(backend.plans) == 6


def test_complete_results_are_not_run_again(tmp_path, backend):
    sweep.run(scenario(), out=tmp_path, backend=backend)
    before = files(tmp_path)
    backend.plans.clear()
    assert len(sweep.run(scenario(), out=tmp_path, backend=backend, resume=True).runs) == 6
    assert backend.plans == []
    assert files(tmp_path) == before


def test_a_finished_run_is_on_disk_soon_even_if_the_next_one_takes_long(tmp_path, backend, monkeypatch):
    monkeypatch.setattr(segments, "WAIT_SECONDS", 0.05)
    part = tmp_path / exchange.PART
    run = backend.run
    counts = []

    def slow(plan):
        if len(backend.plans) == 1:
            deadline = time.monotonic() + 30
            while segments.count(part) == 0 and time.monotonic() < deadline:
                time.sleep(0.01)
            counts.append(segments.count(part))
        return run(plan)

    monkeypatch.setattr(segments.Collected, "add", lambda collected, *at: original(collected, *at) and False)
    backend.run = slow
    sweep.run(scenario(), out=tmp_path, backend=backend, jobs=1)
    assert counts == [1]
    assert len(Results.read(tmp_path).runs) == 6


def test_a_damaged_segment_of_a_killed_sweep_is_named(tmp_path, backend):
    interrupted(tmp_path, backend, 2)
    (path,) = segments.segments(tmp_path, "runs")
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(OutputError) as caught:
        sweep.run(scenario(), out=tmp_path, backend=backend, resume=True)
    assert str(caught.value) == f"{path}: cannot be read (not a Parquet file)"
    assert path.exists()
