"""Segments: the tables of finished runs, before a sweep is merged."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.results import segments, tables
from narrows.results.segments import Writer


def run_table(run, rows, extra):
    columns = {"run": pa.array(np.full(rows, run, np.uint32)), "t_s": pa.array(np.arange(rows) + run * 100.0)}
    if extra:
        columns["extra"] = pa.array(["x"] * rows)
    return pa.table(columns)


def written(folder, groups, rows, extras, names=("flows",)):
    """Writes each group of runs as a segment, and merges the segments."""
    (folder / "runs").mkdir(parents=True)
    writer = Writer(folder / "runs")
    for group in groups:
        for run in group:
            data = {"runs": pa.table({"run": pa.array([run], pa.uint32())})}
            data |= {name: run_table(run, rows[run], run in extras) for name in names}
            writer.add(run, data)
        writer.write()
    parts = segments.segments(folder, "flows")
    paths = [folder / "flows.parquet", folder / "flows.csv"]
    tables.write_rows(paths, segments.in_order(parts), segments.schema(parts))
    return [path.read_bytes() for path in paths]


@given(data=st.data())
def test_the_merged_files_do_not_depend_on_the_division_into_segments(tmp_path_factory, data):
    count = data.draw(st.integers(1, 12), "runs")
    rows = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count), "rows")
    extras = data.draw(st.sets(st.integers(0, count - 1)), "runs with an extra column")
    order = data.draw(st.permutations(range(count)), "order")
    cuts = sorted(data.draw(st.sets(st.integers(1, count)), "cuts"))
    groups = [order[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True) if a < b]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_GROUP_ROWS", 4)
        one = written(tmp_path_factory.mktemp("one"), [list(range(count))], rows, extras)
        many = written(tmp_path_factory.mktemp("many"), groups, rows, extras)
    assert one == many


def test_rows_are_in_the_order_of_runs_and_no_run_is_lost(tmp_path):
    written(tmp_path, [[3, 0], [5, 1], [2, 4]], [2] * 6, {4})
    table = tables.read(tmp_path / "flows.parquet")
    assert table["run"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert table["t_s"].to_pylist()[:4] == [0.0, 1.0, 100.0, 101.0]
    assert table["extra"].to_pylist() == [None] * 8 + ["x"] * 2 + [None] * 2
    assert segments.count(tmp_path) == 6


def test_row_groups_have_a_fixed_number_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_GROUP_ROWS", 5)
    written(tmp_path, [[0], [1], [2]], [4, 4, 4], set())
    metadata = tables.pq.read_metadata(tmp_path / "flows.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [5, 5, 2]


def test_a_run_is_written_at_once_if_the_last_write_is_long_ago(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(segments.time, "monotonic", lambda: now[0])
    (tmp_path / "runs").mkdir()
    writer = Writer(tmp_path / "runs")
    data = {"runs": pa.table({"run": pa.array([0], pa.uint32())})}
    assert not writer.add(0, data)
    now[0] += 3
    assert writer.add(1, data)
    writer.write()
    assert segments.count(tmp_path) == 2
    assert not writer.add(2, data)


def test_large_tables_do_not_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "_WAIT_BYTES", 1000)
    (tmp_path / "runs").mkdir()
    writer = Writer(tmp_path / "runs")
    assert not writer.add(0, {"runs": run_table(0, 10, False)})
    assert writer.add(1, {"runs": run_table(1, 100, False)})
