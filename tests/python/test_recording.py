"""Recordings of runs on real stacks: reading a recording returns the values that were written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from narrows.cli import validate as command
from narrows.results import tables
from narrows.validate import measures, page, recording, runner
from narrows.validate.evidence import Evidence
from narrows.validate.grid import Cell, Flows
from narrows.validate.kept import Kept
from narrows.validate.place import Place
from narrows.validate.recording import Recording
from sketch import Sketch
from test_validate import CELL, Real, ask

LOSSY = Cell(20, 20, 1.0, 0.5, Flows.SINGLE)


def recorded(folder, *, repetitions=2, **how):
    """A folder of runs, and a recording of these runs."""
    asked = ask(folder, repetitions=repetitions)
    runner.run(asked, Real(**how), "kernel", simulator=Sketch())
    file = folder / "runs.parquet"
    recording.add(file, Kept(folder, "kernel"), runner.places(asked), "kernel")
    return asked, file


def test_a_recording_equals_the_folder_of_runs(tmp_path):
    asked, file = recorded(tmp_path)
    (place,) = runner.places(asked)
    before, after = Kept(tmp_path, "kernel").evidence(place), Recording(file).evidence(place)
    assert before is not None and after is not None
    assert (after.seeds, after.unsound, after.kernels, after.days) == (
        before.seeds,
        before.unsound,
        before.kernels,
        before.days,
    )
    a, b = before.sides["near"], after.sides["near"]
    assert b.seeds == a.seeds == [1, 2]
    for figure in measures.FIGURES:
        assert b.figures[figure] == pytest.approx(a.figures[figure], nan_ok=True)
    for (t, window), (at, size) in zip(a.windows, b.windows, strict=True):
        assert at == pytest.approx(t, abs=0.0005) and size == pytest.approx(window, abs=0.5)


def test_both_are_compared_in_the_same_way_and_the_page_has_the_command(tmp_path):
    asked, file = recorded(tmp_path)
    from_folder = runner.run(asked, None, "kernel", simulator=Sketch())
    outcome = runner.run(asked, None, "kernel", source=Recording(file), simulator=Sketch())
    (found,), (expected,) = outcome.findings, from_folder.findings
    # A recording rounds windows to whole segments, so windows may differ slightly.
    assert found.errors == pytest.approx(expected.errors, abs=5e-3, nan_ok=True)
    assert outcome.dates == from_folder.dates and outcome.kernels == from_folder.kernels
    text = page.render(outcome, [], "0.1.0")
    assert (
        "$ sudo narrows validate --on kernel" in text
        and "--repetitions 2 --duration 2s --record FILE" in text
    )
    assert "$ narrows validate --on recorded --recording FILE" in text


def test_disturbed_runs_stay_disturbed(tmp_path):
    asked, file = recorded(tmp_path, disturbed=True)
    outcome = runner.run(asked, None, "kernel", source=Recording(file), simulator=Sketch())
    assert outcome.findings == [] and outcome.unsound == {f"reno/{CELL.name}": 2}
    assert outcome.failed == {f"reno/{CELL.name}": "all 2 runs were disturbed: the processors were busy"}


def test_a_run_that_is_added_again_replaces_the_earlier_one(tmp_path):
    asked, file = recorded(tmp_path)
    (place,) = runner.places(asked)

    class Twice:
        """The evidence of the folder, with doubled goodput and other seeds."""

        def evidence(self, place):
            found = Kept(tmp_path, "kernel").evidence(place)
            near = found.sides["near"]
            near.figures["goodput_bps"][:] = [2 * value for value in near.figures["goodput_bps"]]
            near.seeds[:] = [2, 3]
            return Evidence({"near": near}, seeds=(2, 3))

    first = Recording(file).evidence(place).sides["near"].figures["goodput_bps"]
    assert recording.add(file, Twice(), [place], "kernel") == 3
    near = Recording(file).evidence(place).sides["near"]
    assert near.seeds == [1, 2, 3]
    assert near.figures["goodput_bps"] == pytest.approx([first[0], 2 * first[0], 2 * first[1]])


def test_runs_of_another_scenario_are_ignored(tmp_path, monkeypatch):
    asked, file = recorded(tmp_path)
    (place,) = runner.places(asked)
    assert Recording(file).evidence(Place(tmp_path, "reno", LOSSY, "2s")) is None
    assert Recording(file).evidence(Place(tmp_path, "reno", CELL, "3s")) is None
    monkeypatch.setattr(Cell, "queue", 5)
    assert Recording(file).evidence(place) is None
    outcome = runner.run(asked, None, "kernel", source=Recording(file), simulator=Sketch())
    assert outcome.findings == [] and outcome.absent == [place.name]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "no such file; `narrows validate --on vm --record FILE` makes one"),
        (b"PAR1", "cannot be read (not a Parquet file)"),
        (
            pa.table({"algorithm": ["reno"]}),
            "found no column 'cell', expected a recording of `narrows validate`",
        ),
        ("empty", "found no rows, expected a recording of `narrows validate`"),
        ("words", "expected a recording of `narrows validate` ("),
    ],
)
def test_a_file_that_is_not_a_recording_gives_a_one_line_error(narrows, tmp_path, made, said):
    file = tmp_path / "runs.parquet"
    if isinstance(made, bytes):
        file.write_bytes(made)
    elif made == "empty":
        tables.write(file, recording._SCHEMA.empty_table())
    elif made == "words":
        tables.write(file, pa.table({name: ["one"] for name in recording._SCHEMA.names}))
    elif made is not None:
        tables.write(file, made)
    code, printed, line = narrows(
        "validate", "--on", "recorded", "--recording", file, "--out", tmp_path / "out"
    )
    assert (code, printed, line.count("\n")) == (2, "", 1)
    assert line.startswith(f"{file}: {said}")


def test_contradicting_options_give_a_one_line_error(narrows, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "real_stacks", lambda _: pytest.fail("asked for real stacks"))
    for args, said in (
        (
            ("--on", "recorded", "--record", tmp_path / "a"),
            "--record: found --on recorded, expected --on kernel or --on vm",
        ),
        (
            ("--recording", tmp_path / "a"),
            "--recording: found --on kernel, expected --on recorded (--record writes a recording)",
        ),
        (
            ("--record", tmp_path),
            f"--record: found {str(tmp_path)!r}, expected a file in an existing folder",
        ),
    ):
        assert narrows("validate", "--out", tmp_path / "out", *args) == (2, "", said + "\n")


def test_the_command_records_and_compares_with_it(narrows, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "real_stacks", lambda _: Real())
    monkeypatch.setattr(command.sweep, "simulator", Sketch)
    file, out = tmp_path / "runs.parquet", ("--out", tmp_path / "out", "--no-figures", "--algorithms", "reno")
    cells = ("--cells", f"{CELL.name},{LOSSY.name}")
    first = narrows("validate", *out, "--cells", CELL.name, "--duration", "2s", "--record", file)
    assert first[0] == 0 and f"{file}: 3 rows" in first[1]
    monkeypatch.setattr(command, "real_stacks", lambda _: pytest.fail("asked for real stacks"))
    code, printed, said = narrows("validate", *out, *cells, "--on", "recorded", "--recording", file)
    assert code == 0 and "median error in goodput: 11.1 %" in printed
    assert "runs.parquet has 1 of the 2 requested pairs of algorithm and cell" in said
    said = narrows("validate", *out, *cells, "--on", "recorded", "--recording", file, "--duration", "9s")
    expected = "expected 2s, the duration of the runs in runs.parquet"
    assert said == (2, "", f"--duration: found '9s', {expected}\n")


def test_disturbed_runs_of_a_recording_are_listed_and_do_not_fail_the_call(narrows, monkeypatch, tmp_path):
    asked = ask(tmp_path, algorithms=("cubic", "reno"))
    for name, disturbed in (("cubic", True), ("reno", False)):
        one = ask(tmp_path, algorithms=(name,))
        runner.run(one, Real(disturbed=disturbed), "kernel", simulator=Sketch())
    file = tmp_path / "runs.parquet"
    recording.add(file, Kept(tmp_path, "kernel"), runner.places(asked), "kernel")
    monkeypatch.setattr(command.sweep, "simulator", Sketch)
    args = ("--on", "recorded", "--recording", file, "--cells", CELL.name, "--algorithms", "cubic,reno")
    code, printed, _ = narrows("validate", *args, "--out", tmp_path / "out", "--no-figures")
    assert code == 0 and f"failed: cubic/{CELL.name}: all 2 runs were disturbed" in printed
