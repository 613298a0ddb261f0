"""Segments: the tables of finished runs, before a sweep is merged."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.errors import OutputError
from narrows.results import segments, tables
from narrows.results.segments import Collected


def run_table(run, rows, extras):
    columns = {"run": pa.array(np.full(rows, run, np.uint32)), "t_s": pa.array(np.arange(rows) + run * 100.0)}
    return pa.table(columns | {name: pa.array(["x"] * rows) for name in extras})


def tables_of(run, rows, extras=()):
    return {
        "runs": pa.table({"run": pa.array([run], pa.uint32())}),
        "flows": run_table(run, rows, extras),
    }


def stage_in(folder):
    (folder / "runs").mkdir(parents=True)
    return segments.new_stage(folder)


def written(folder, groups, rows, extras):
    """Writes each group of runs as a segment, and merges the segments."""
    stage = stage_in(folder)
    for group in groups:
        segments.put(stage, {run: tables_of(run, rows[run], extras.get(run, ())) for run in group})
    parts = segments.segments(folder, "flows")
    paths = [folder / "flows.parquet", folder / "flows.csv"]
    tables.write_rows(paths, segments.in_order(parts), segments.schema(parts))
    return [path.read_bytes() for path in paths]


@given(data=st.data())
def test_the_merged_files_do_not_depend_on_the_division_into_segments(tmp_path_factory, data):
    count = data.draw(st.integers(1, 12), "runs")
    rows = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count), "rows")
    columns = st.lists(st.sampled_from("abc"), unique=True)
    extras = data.draw(st.dictionaries(st.integers(0, count - 1), columns), "runs with extra columns")
    order = data.draw(st.permutations(range(count)), "order")
    cuts = sorted(data.draw(st.sets(st.integers(1, count)), "cuts"))
    groups = [order[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True) if a < b]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_GROUP_ROWS", 4)
        one = written(tmp_path_factory.mktemp("one"), [list(range(count))], rows, extras)
        many = written(tmp_path_factory.mktemp("many"), groups, rows, extras)
    assert one == many


def test_rows_are_in_the_order_of_runs_and_no_run_is_lost(tmp_path):
    written(tmp_path, [[3, 0], [5, 1], [2, 4]], [2] * 6, {4: ["extra"]})
    table = tables.read(tmp_path / "flows.parquet")
    assert table["run"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert table["t_s"].to_pylist()[:4] == [0.0, 1.0, 100.0, 101.0]
    assert table["extra"].to_pylist() == [None] * 8 + ["x"] * 2 + [None] * 2
    assert segments.count(tmp_path) == 6


def test_row_groups_have_a_fixed_number_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_GROUP_ROWS", 5)
    written(tmp_path, [[0], [1], [2]], [4, 4, 4], {})
    metadata = tables.pq.read_metadata(tmp_path / "flows.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [5, 5, 2]


def test_it_is_time_to_write_a_run_if_the_last_write_is_long_ago(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(segments.time, "monotonic", lambda: now[0])
    collected = Collected()
    assert not collected.add(0, tables_of(0, 1))
    now[0] += 3
    assert collected.add(1, tables_of(1, 1))
    assert sorted(collected.take()) == [0, 1]
    assert not collected.add(2, tables_of(2, 1))


def test_large_tables_do_not_wait(monkeypatch):
    monkeypatch.setattr(segments, "_WAIT_BYTES", 1000)
    collected = Collected()
    assert not collected.add(0, tables_of(0, 10))
    assert collected.add(1, tables_of(1, 100))


def test_a_copy_that_is_killed_leaves_no_half_segment(tmp_path, monkeypatch):
    written(tmp_path / "a", [[0, 1]], [2, 2], {})
    stage = stage_in(tmp_path / "b")
    copyfile = segments.shutil.copyfile

    def killed(source, target):
        if source.name == "runs.parquet":
            raise KeyboardInterrupt
        copyfile(source, target)

    monkeypatch.setattr(segments.shutil, "copyfile", killed)
    (tmp_path / "a/flows.parquet").unlink()
    with pytest.raises(KeyboardInterrupt):
        segments.copy(tmp_path / "a", stage)
    assert [path for path in (tmp_path / "b/runs").iterdir() if path != stage] == []
    monkeypatch.undo()
    assert segments.copy(tmp_path / "a", stage) == [0, 1]
    assert segments.runs_in(tmp_path / "b") == [0, 1]


def test_a_second_attempt_at_a_segment_changes_nothing(tmp_path):
    stage = stage_in(tmp_path)
    segments.put(stage, {run: tables_of(run, 3) for run in (4, 2)})
    segments.put(stage, {run: tables_of(run, 3) for run in (2, 4)})
    assert segments.runs_in(tmp_path) == [2, 4]
    assert list(stage.iterdir()) == []


def test_a_worker_that_outlives_its_sweep_adds_nothing(tmp_path):
    stage = stage_in(tmp_path)
    segments.discard_stages(tmp_path)
    with pytest.raises(FileNotFoundError):
        segments.put(stage, {0: tables_of(0, 1)})
    assert segments.runs_in(tmp_path) == []


def test_a_run_in_two_segments_is_refused(tmp_path):
    stage = stage_in(tmp_path)
    for runs in ((0, 3), (1, 3)):
        segments.put(stage, {run: tables_of(run, 1) for run in runs})
    with pytest.raises(OutputError, match="found run 3 in two segments, expected each run once"):
        segments.runs_in(tmp_path)


def merge(folder, name):
    segments.runs_in(folder)
    parts = segments.segments(folder, name)
    segments.schema(parts)
    return list(segments.in_order(parts))


def damaged(path):
    path.write_bytes(b"PAR1" + path.read_bytes()[4:-8] + b"\0" * 8)


def without_run(path):
    tables.write(path, pa.table({"t_s": [1.0]}))


NO_RUN = "found no column 'run', expected results of this version"


@pytest.mark.parametrize("name", ["runs", "flows"])
@pytest.mark.parametrize(
    ("change", "says"), [(damaged, "cannot be read (not a Parquet file)"), (without_run, NO_RUN)]
)
def test_a_damaged_segment_is_named_in_one_line(tmp_path, name, change, says):
    written(tmp_path, [[0], [1]], [2, 2], {})
    path = tmp_path / f"runs/1/{name}.parquet"
    change(path)
    with pytest.raises(OutputError) as caught:
        merge(tmp_path, name)
    assert str(caught.value) == f"{path}: {says}"


def test_columns_of_different_types_are_one_line(tmp_path):
    stage = stage_in(tmp_path)
    segments.put(stage, {0: tables_of(0, 1)})
    wrong = pa.table({"run": pa.array([1], pa.uint32()), "t_s": ["soon"]})
    segments.put(stage, {1: {"runs": tables_of(1, 1)["runs"], "flows": wrong}})
    with pytest.raises(OutputError, match=r"^table flows: found different types \(.*t_s.*\), expected equal"):
        segments.schema(segments.segments(tmp_path, "flows"))
