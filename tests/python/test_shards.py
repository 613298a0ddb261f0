"""Parts of a sweep that run separately and are then merged."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import sweep
from narrows.cli import options
from narrows.errors import NarrowsError, OutputError
from narrows.results.merge import merge
from narrows.results.results import Results
from narrows.scenario.load import expand
from test_sweep import ONE_POINT, files, loads, scenario


def parts(folder, backend, n):
    for i in range(1, n + 1):
        sweep.run(scenario(), out=folder / str(i), backend=backend, shard=(i, n))
    return [folder / str(i) for i in range(1, n + 1)]


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_merged_parts_are_the_whole_sweep_byte_for_byte(tmp_path, backend, n):
    sweep.run(scenario(), out=tmp_path / "whole", backend=backend)
    backend.plans.clear()
    folders = parts(tmp_path, backend, n)
    assert len(backend.plans) == 6
    merge(list(reversed(folders)), tmp_path / "merged")
    assert files(tmp_path / "merged") == files(tmp_path / "whole")


def test_a_merged_sweep_is_not_run_again_but_a_part_is(tmp_path, backend):
    folders = parts(tmp_path, backend, 2)
    merge(folders, tmp_path / "merged")
    backend.plans.clear()
    assert len(sweep.run(scenario(), out=tmp_path / "merged", backend=backend, resume=True).runs) == 6
    assert not backend.plans
    sweep.run(scenario(), out=folders[0], backend=backend, resume=True)
    assert len(backend.plans) == 6


def test_interrupted_sweeps_are_parts_too(tmp_path, backend):
    backend.fail_seed = 3
    with pytest.raises(NarrowsError):
        sweep.run(scenario(), out=tmp_path / "a", backend=backend, jobs=1)
    backend.fail_seed = None
    sweep.run(scenario(), out=tmp_path / "whole", backend=backend)
    done = set(Results.read(tmp_path / "a").runs["run"].to_pylist())
    assert done == {0, 1}
    sweep.run(scenario(), out=tmp_path / "b", backend=backend, shard=(2, 3))
    sweep.run(scenario(), out=tmp_path / "c", backend=backend, shard=(3, 3))
    merge([tmp_path / name for name in "abc"], tmp_path / "merged")
    assert files(tmp_path / "merged") == files(tmp_path / "whole")


def test_what_cannot_be_merged_is_one_line_and_writes_nothing(tmp_path, backend):
    one, two, three = parts(tmp_path, backend, 3)
    other = tmp_path / "other"
    sweep.run(loads(ONE_POINT.replace("demo", "other")), out=other, backend=backend)
    out = tmp_path / "merged"
    for folders, message in (
        ([one, three], "found no results of 2 of 6 runs, e.g. of run 2; expected all"),
        ([one, two, two], "found run 2, which"),
        ([one, other], "found the value of another sweep, expected the value in"),
        ([one, tmp_path / "none"], "no such folder, expected a folder of results"),
    ):
        with pytest.raises(OutputError, match=message) as error:
            merge(folders, out)
        assert "\n" not in str(error.value)
        assert not out.exists()
    with pytest.raises(OutputError, match="expected another folder"):
        merge([one, two, three], one)
    shutil.rmtree(two)


@pytest.mark.parametrize("table", ["runs", "flows"])
def test_a_damaged_part_is_named_in_one_line(tmp_path, backend, narrows, table):
    one, two = parts(tmp_path, backend, 2)
    path = two / f"{table}.parquet"
    path.write_bytes(path.read_bytes()[:-4])
    code, out, error = narrows("merge", one, two, "--out", tmp_path / "merged")
    assert (code, out) == (2, "")
    assert error == f"{path}: cannot be read (not a Parquet file)\n"
    assert not (tmp_path / "merged").exists()


@given(count=st.integers(1, 60), data=st.data())
def test_the_parts_are_a_division_of_the_runs(count, data):
    n = data.draw(st.integers(1, count))
    runs = expand(scenario(), 1) * count
    divided = [sweep.part_of(runs[:count], i, n) for i in range(1, n + 1)]
    assert [run for part in divided for run in part] == runs[:count]
    assert max(map(len, divided)) - min(map(len, divided)) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "-1/2", ""])
def test_a_wrong_shard_is_one_line(text):
    with pytest.raises(NarrowsError, match=r"^--shard: found .*, expected a part of all parts, such as 2/8$"):
        options.shard(text)


@pytest.mark.parametrize("text", ["csv", "json", "parquet;csv", ""])
def test_wrong_formats_are_one_line(text):
    with pytest.raises(NarrowsError, match=r"^--formats: found .*, expected parquet, or parquet,csv$"):
        options.formats(text)


def test_a_long_table_has_no_csv_unless_asked(tmp_path, backend, monkeypatch):
    monkeypatch.setattr("narrows.results.store.CSV_ROWS", 10)
    sweep.run(scenario(), out=tmp_path / "a", backend=backend)
    assert (tmp_path / "a/runs.csv").exists() and not (tmp_path / "a/flows.csv").exists()
    sweep.run(scenario(), out=tmp_path / "b", backend=backend, formats=options.formats("csv,parquet"))
    assert (tmp_path / "b/flows.csv").exists()


def test_the_command_runs_and_merges_parts(narrows, tmp_path, monkeypatch, backend):
    monkeypatch.setattr(sweep, "simulator", lambda: backend)
    (tmp_path / "x.toml").write_text(f"{ONE_POINT.replace('demo', 'x')}[sweep]\nseeds = 3\n")
    monkeypatch.chdir(tmp_path)
    for i in (1, 2):
        code, out, _ = narrows("run", "x.toml", "--shard", f"{i}/2")
        assert code == 0 and f"tables in results/x-{i}-of-2" in out
    code, out, _ = narrows("merge", "results/x-1-of-2", "results/x-2-of-2", "--out", "merged")
    assert (code, out) == (0, "3 runs in merged\n")
    code, _, error = narrows("merge", "results/x-1-of-2", "--out", "again")
    assert code == 2 and error == "again: found no results of 2 of 3 runs, e.g. of run 1; expected all\n"
