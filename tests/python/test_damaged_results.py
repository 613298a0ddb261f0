"""Damaged results: commands print one line with the name of the damaged file."""

import json
import re
import shutil

import pytest
from narrows import retired, sweep
from narrows.errors import OutputError
from narrows.results.by_run import read_runs
from narrows.results.results import Results
from narrows.results.tables import SCHEMAS
from narrows.scenario.load import loads
from sketch import Sketch
from texts import SLOW

TEXT = f"""
duration = "2s"{SLOW}[[flows]]
[sweep.vary]
"topology.rtt" = ["20ms", "30ms"]
"""


@pytest.fixture
def results(tmp_path):
    sweep.run(loads(TEXT), backend=Sketch(), out=tmp_path / "o")
    return tmp_path / "o"


def refused(narrows, folder, line):
    """Checks that every command that reads results prints only this line."""
    sound = folder.parent / "sound"
    for arguments in (("report", folder), ("compare", folder, sound), ("compare", sound, folder)):
        assert narrows(*arguments) == (2, "", f"{line}\n")
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(("place", "column"), [("flows", "flow"), ("links", "link"), ("runs", "seed")])
def test_a_table_that_lacks_a_column_is_named(narrows, results, place, column):
    shutil.copytree(results, results.parent / "sound")
    shutil.copy(results / "events.parquet", results / f"{place}.parquet")
    line = f"{results}/{place}.parquet: found no column {column!r}, expected results of this version"
    refused(narrows, results, line)


def test_every_column_is_asked_for(results):
    for name, schema in SCHEMAS.items():
        table = Results.read(results).table(name)
        path = results / f"{name}.parquet"
        if not path.exists():
            continue
        # Results that an earlier version of Narrows wrote may lack these columns.
        last = [column for column in schema.names if column not in retired.ADDED.get(name, [])][-1]
        sweep.tables.write(path, table.drop_columns([last]))
        with pytest.raises(OutputError, match=f"{name}.parquet: found no column '{last}'"):
            Results.read(results).table(name)


def test_a_factor_without_a_column_is_named(narrows, results):
    shutil.copytree(results, results.parent / "sound")
    runs = Results.read(results).runs
    sweep.tables.write(results / "runs.parquet", runs.drop_columns(["topology.rtt"]))
    line = f"{results}/runs.parquet: found no column 'topology.rtt', expected results of this version"
    refused(narrows, results, line)


def test_an_error_names_flows_of_a_missing_run(narrows, results):
    runs = Results.read(results).runs
    sweep.tables.write(results / "runs.parquet", runs.slice(0, 1))
    code, out, err = narrows("compare", results, results)
    assert (code, out) == (2, "")
    assert err == f"{results}: found a flow of run 1, expected one of the 1 that the table runs has\n"


def test_tables_of_a_matrix_that_are_not_its_own_give_a_one_line_error(narrows, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "simulator", Sketch)
    asked = ("matrix", "cubic", "bbr", "--buffer", "1bdp", "--seeds", "1", "--duration", "2s", "--no-figures")
    asked += ("--out", tmp_path / "m")
    assert narrows(*asked)[0] == 0
    folder = tmp_path / "m/results"
    shutil.copy(folder / "links.parquet", folder / "flows.parquet")
    code, out, err = narrows(*asked, "--reuse")
    assert (code, out) == (2, "")
    assert err == f"{folder}/flows.parquet: found no column 'flow', expected results of this version\n"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("scenario", None, "found null, expected a table"),
        ("scenario", "x", "found 'x', expected a table"),
        ("warmup_s", "2s", "found '2s', expected a number"),
        ("warmup_s", True, "found true, expected a number"),
        ("factors", 5, "found 5, expected a list of names"),
        ("factors", [["a"]], "found a list of 1, expected a list of names"),
        ("entries", [1], "found a list of 1, expected a list of names"),
        ("runs", {}, "found a table, expected a list of tables"),
        ("runs", [1], "found a list of 1, expected a list of tables"),
    ],
)
def test_metadata_of_a_wrong_type_is_named(narrows, results, key, value, says):
    shutil.copytree(results, results.parent / "sound")
    data = json.loads((results / "metadata.json").read_text())
    (results / "metadata.json").write_text(json.dumps(data | {key: value}))
    refused(narrows, results, f"{results}/metadata.json: {key}: {says}")


@pytest.mark.parametrize("key", ["scenario", "warmup_s", "entries", "runs"])
def test_metadata_may_lack_a_key(narrows, results, key):
    data = json.loads((results / "metadata.json").read_text())
    del data[key]
    (results / "metadata.json").write_text(json.dumps(data))
    assert narrows("report", results)[0] == 0


def test_a_column_that_no_table_has_is_named(results):
    says = "found no column 'x', expected results of this version"
    expected = f"^{re.escape(str(results))}/flows.parquet: {says}$"
    with pytest.raises(OutputError, match=expected):
        Results.read(results).column("flows", "x")
    run = read_runs(Results.read(results))[0]
    for read in (run.column, run.names):
        with pytest.raises(OutputError, match=expected):
            read("flows", "x")
    memory = sweep.run(loads(TEXT), backend=Sketch())
    with pytest.raises(OutputError, match=f"^table flows: {says}$"):
        memory.column("flows", "x")
    with pytest.raises(OutputError, match=f"^table flows: {says}$"):
        read_runs(memory)[0].column("flows", "x")
