"""If tables are read run by run, the values are the same, and unused columns are not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from narrows import sweep
from narrows.results import tables
from narrows.results.by_run import Columns, read_runs
from narrows.results.results import Results
from narrows.scenario.load import loads
from sketch import Sketch
from texts import TWO_FLOWS

SCENARIO = f'duration = "2s"{TWO_FLOWS}[sweep]\nseeds = 3\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sweep.run(loads(SCENARIO), out=tmp_path, backend=Sketch(), jobs=1, formats=("parquet",))
    return tmp_path


def test_each_run_has_its_rows_and_no_others(folder: Path) -> None:
    whole = Results.read(folder).flow_samples
    runs = read_runs(Results.read(folder))
    assert len(runs) == 3 and "run" not in runs[0].tables["flow_samples"]
    for number, run in enumerate(runs):
        of_run = whole.filter(np.equal(whole["run"].to_numpy(), number))
        assert len(of_run) > 0
        assert set(run.tables["flow_samples"]) == set(whole.column_names) - {"run"}
        for name, values in run.tables["flow_samples"].items():
            assert np.array_equal(values, of_run[name].to_numpy(), equal_nan=True), name
        assert run.names("flows", "cc") == ["cubic", "bbr"]
    with pytest.raises(KeyError):
        runs[0].tables["flows"]["nonsense"]


def test_unused_columns_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = tables.read

    def noting(path: Path, columns: list[str] | None = None) -> object:
        read.extend(f"{path.stem}.{name}" for name in columns or ["*"])
        return real(path, columns)

    monkeypatch.setattr(tables, "read", noting)
    runs = read_runs(Results.read(folder))
    for run in runs:
        run.flow_series(0, "cwnd")
    samples = [name for name in read if name.startswith("flow_samples")]
    assert sorted(samples) == [f"flow_samples.{name}" for name in ("cwnd", "flow", "run", "t_s")]
    assert "flow_samples.*" not in read and "link_samples.*" not in read


def test_finished_runs_of_an_interrupted_sweep_and_tables_in_memory_are_read_alike(folder: Path) -> None:
    on_disk = Results.read(folder)
    in_memory = Results(on_disk.metadata, {"flows": on_disk.flows})
    assert in_memory.columns("flows") == on_disk.flows.column_names
    found = Columns(in_memory, "flows", 3).of(2)["goodput_bps"]
    assert np.array_equal(found, on_disk.flows["goodput_bps"].to_numpy()[4:6])
    assert list(Columns(in_memory, "links", 3).of(1)["name"]) == []
