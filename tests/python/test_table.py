"""Tables fit the terminal. Every command is tested in terminals of 80 and 120 columns.

The layout is also tested with tables whose columns are random.
"""

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import sweep
from narrows.backends.kernel import features, namespaces
from narrows.cli import compare as comparison
from narrows.cli import study as studies
from narrows.cli import validate as validation
from narrows.cli.console import plain
from narrows.cli.figures import heading as heading_of
from narrows.cli.main import COMMANDS
from narrows.cli.table import GAP, LEAST_NAME, Kind, Size, Table, broken, layout
from narrows.results.compare import Comparison, Pair
from narrows.results.figures import HEADINGS
from narrows.studies import find_study, load_study
from narrows.studies.judge import judge
from narrows.studies.runner import Outcome, Real
from narrows.validate import grid, measures, runner
from narrows.validate.judge import TITLES
from narrows.validate.measures import Side
from narrows.validate.runner import Ask
from rich.console import Console
from sketch import Sketch

SCENARIOS = Path(__file__).parents[2] / "scenarios"
WIDTHS = (80, 120)
FIGURE = re.compile(r"\d+\.\d+")
CODE = re.compile(r"\x1b\[[0-9;]*m")
"""A terminal's control sequence for bold or a colour."""
SWEEP = """
name = "wide"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
[[flows]]
name = "a-flow-with-a-long-name"
[[flows]]
cc = "bbr"
[sweep]
seeds = 2
[sweep.vary]
"topology.queue" = ["1bdp", { kind = "codel", target = "5ms", interval = "100ms", limit = "1000p" }]
"topology.rtt" = ["20ms", "100ms"]
"flows.0.mss" = [536, 1448]
"""


@pytest.fixture
def terminal(monkeypatch):
    def of(width):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    return of


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, backend):
    """Tests run in a folder with `wide.toml`, and `doctor` tests no qdiscs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "simulator", lambda: backend)
    monkeypatch.setattr(features, "qdiscs", list)
    monkeypatch.setattr(namespaces, "RUN", tmp_path)
    monkeypatch.setenv("NARROWS_DATA", "data")
    (tmp_path / "wide.toml").write_text(SWEEP)


def study_on_both_sides(monkeypatch):
    loaded = load_study(find_study("brf"))
    findings = [judge(claim, {}) for claim in loaded.claims]
    outcome = Outcome(loaded, True, {}, findings, real=Real(findings=findings))
    monkeypatch.setattr(studies, "run_study", lambda *_, **__: outcome)


def validated():
    side = Side({figure: [1.0] for figure in measures.FIGURES})
    findings = [
        runner.Finding(algorithm, cell, "near", side, side)
        for algorithm in ("cubic", "westwood")
        for cell in grid.ci()
    ]
    return runner.Outcome(Ask(Path("out"), ("cubic", "westwood"), grid.ci(), 1, 1, "2s"), "vm", findings)


CALLS = {
    "run": [
        ["run", "wide.toml"],
        ["run", SCENARIOS / "two-flows.toml"],
        ["run", "wide.toml", "--set", "flows.0.cc=brf"],
    ],
    "compare": [["compare", "results/wide", "results/other"]],
    "diff": [["diff", "results/wide", "results/other", "--all"]],
    "check": [["check", "wide.toml", "--set", "flows.0.cc=brf"]],
    "show": [
        ["show", SCENARIOS / "abilene.toml"],
        ["show", SCENARIOS / "abilene.toml", "--results", "loads"],
    ],
    "list": [["list"], ["list", "congestion"]],
    "doctor": [["doctor"]],
    "data": [["data"]],
    "matrix": [["matrix", "cubic", "bbr", "--seeds", "1", "--duration", "2s", "--no-figures"]],
    "study": [["study"], ["study", "brf", "--no-figures"]],
}
WITHOUT = {
    "report": "prints a path",
    "plot": "prints paths",
    "play": "prints a path",
    "export": "prints a path",
    "schema": "prints JSON",
    "controller": "logs",
    "cc": "prints the agent's lines",
    "vm": "prints paths",
    "validate": "its tables have a separate test",
    "train": "prints sentences",
    "merge": "prints a sentence",
    "cache": "prints sentences",
}


def test_each_command_is_tested_or_prints_no_table():
    assert {entry.name for entry in COMMANDS} == CALLS.keys() | WITHOUT.keys()


def printed(text):
    return [CODE.sub("", line) for line in text.splitlines()]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "call",
    [call for calls in CALLS.values() for call in calls],
    ids=lambda call: "-".join(str(w) for w in call),
)
def test_a_command_prints_no_line_wider_than_the_terminal(narrows, terminal, monkeypatch, call, width):
    if call[0] in ("compare", "diff"):
        narrows("run", "wide.toml")
        narrows("run", "wide.toml", "--seed", "7", "--out", "results/other")
    if call[0] == "doctor":
        # Other tests may load controllers into the kernel between the two calls, so both calls get this list.
        known = features.congestion_controls()
        monkeypatch.setattr(features, "congestion_controls", lambda: known)
    if "loads" in call:
        narrows("run", call[1], "--out", "loads")
    if call[0] == "matrix":
        monkeypatch.setattr(sweep, "simulator", Sketch)
    study_on_both_sides(monkeypatch)
    whole = narrows(*call)[1]
    terminal(width)
    code, out, _ = narrows(*call)
    lines = printed(out)
    assert code in (0, 1) and lines
    # Lines with paths may be wider than the terminal, because users copy paths.
    assert [line for line in lines if len(line) > width and not line.startswith("tables in ")] == []
    assert "…" not in out
    # Narrow tables contain everything that wide tables contain. They may repeat headings and names.
    assert Counter(FIGURE.findall(whole)) <= Counter(FIGURE.findall(out))
    assert Counter("".join(whole.split())) <= Counter("".join("".join(lines).split()))


def test_a_terminal_of_unknown_width_has_80_columns(narrows, terminal):
    terminal(0)
    _, out, _ = narrows("list", "networks")
    assert 40 < max(map(len, printed(out))) <= 80


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_a_validation_fit(terminal, capsys, width):
    terminal(width)
    validation.show(validated(), plain())
    lines = printed(capsys.readouterr().out)
    assert [line for line in lines if len(line) > width] == []
    headings = " ".join(lines)
    assert all(part in headings for title in TITLES.values() for part in title.split(", "))


def test_a_comparison_keeps_both_values_and_their_difference_in_one_table(terminal, capsys):
    terminal(80)
    figures = ("goodput_bps", "rtt_mean_s", "rtt_p95_s", "retransmits")
    pairs = [Pair({}, "flow", "bbr", figure, 1000.0, 2000.0) for figure in figures]
    comparison.show(Comparison(pairs, [], []), ("sim", "kernel"), plain())
    lines = printed(capsys.readouterr().out)
    assert max(map(len, lines)) <= 80
    rows = [line.split()[1:] for line in lines if line.startswith("bbr")]
    assert [len(row) % 3 for row in rows] == [0] * len(rows) and len(rows) > 1
    assert sum(len(row) for row in rows) == 3 * len(figures)


def test_json_and_pipes_have_whole_rows(narrows, terminal):
    _, piped, _ = narrows("run", "wide.toml")
    assert max(map(len, piped.splitlines())) > 120
    assert sum("a-flow-with-a-long-name" in line for line in piped.splitlines()) == 8
    _, before, _ = narrows("run", "wide.toml", "--json")
    terminal(80)
    assert narrows("run", "wide.toml", "--json")[1] == before
    assert len(json.loads(before)["flows"]) == 16


def test_a_real_terminal_has_its_own_width():
    """The command asks the terminal for its width, because shells do not export `COLUMNS`."""
    for width in WIDTHS:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-m", "narrows", "list", "networks"]
        with subprocess.Popen(command, stdout=theirs, env=environment | {"TERM": "xterm"}) as process:
            os.close(theirs)
            text = b""
            try:
                while part := os.read(ours, 4096):
                    text += part
            except OSError:  # the terminal closes when the command ends
                pass
            assert process.wait() == 0
        os.close(ours)
        lengths = [len(line.rstrip()) for line in printed(text.decode())]
        assert width // 2 < max(lengths) <= width


names = st.integers(1, 60).map(lambda width: Size(Kind.NAME, width, width, ""))
texts = st.tuples(st.integers(1, 60), st.integers(1, 16)).map(
    lambda widths: Size(Kind.TEXT, max(widths), min(widths), "")
)
figures = st.tuples(st.integers(1, 14), st.sampled_from(["", "a", "b"])).map(
    lambda drawn: Size(Kind.FIGURE, drawn[0], drawn[0], drawn[1])
)


def with_small_groups(columns):
    """Splits the columns into groups of at most two, which fit next to the names."""
    return [
        replace(column, group=column.group and f"{column.group}{i // 2}") for i, column in enumerate(columns)
    ]


@given(
    st.lists(names, max_size=3),
    st.lists(texts | figures, min_size=1, max_size=12).map(with_small_groups),
    st.integers(60, 150),
)
def test_a_layout_shows_each_column_within_the_width(leading, others, width):
    sizes = leading + others
    tables = layout(sizes, width)
    for table in tables:
        assert list(table) == sorted(table)
        assert set(range(len(leading))) <= table.keys()
        assert sum(table.values()) + GAP * (len(table) - 1) <= width
        for i, given_ in table.items():
            least = min(sizes[i].widest, LEAST_NAME) if sizes[i].kind is Kind.NAME else sizes[i].least
            assert least <= given_ <= sizes[i].widest
    shown = [i for table in tables for i in table if i >= len(leading)]
    assert shown == list(range(len(leading), len(sizes)))
    if sum(size.widest for size in sizes) + GAP * (len(sizes) - 1) <= width:
        assert len(tables) == 1


cells = st.text(st.sampled_from("abc.-/ 12"), min_size=1, max_size=20).filter(str.strip)
headed = st.lists(
    st.tuples(
        st.sampled_from(["add_name", "add_text", "add_figure"]),
        cells,
        st.lists(cells, min_size=2, max_size=2),
    ),
    min_size=1,
    max_size=8,
).map(lambda columns: sorted(columns, key=lambda column: column[0] != "add_name"))


@given(headed, st.integers(4, 60))
def test_a_table_of_any_content_fits_any_terminal(columns, width):
    table, out = Table(), io.StringIO()
    for method, heading, _ in columns:
        getattr(table, method)(heading)
    for i in (0, 1):
        table.add_row(*(content[i] for _, _, content in columns))
    table.print(Console(file=out, width=width, markup=False, emoji=False, highlight=False))
    lines = out.getvalue().splitlines()
    assert [line for line in lines if len(line) > width] == []
    given_ = "".join(text for _, heading, content in columns for text in (heading, *content))
    assert Counter("".join(given_.split())) <= Counter("".join("".join(lines).split()))


def test_rows_are_lists_of_lines_on_a_narrow_terminal():
    table, out = Table(), io.StringIO()
    table.add_name("flow")
    table.add_figure("goodput")
    table.add_figure("mean RTT")
    table.add_row("a-flow-with-a-name", "96.31 Mbit/s", "40.5 ms")
    table.add_row("b", "1.00 Mbit/s", "41.0 ms")
    table.print(Console(file=out, width=20, markup=False, emoji=False, highlight=False))
    expected = "flow\na-flow-with-a-name\ngoodput 96.31 Mbit/s\nmean RTT 40.5 ms\n\n"
    assert out.getvalue() == expected + "flow b\ngoodput 1.00 Mbit/s\nmean RTT 41.0 ms\n"


@given(st.text(st.sampled_from("ab.-/ ="), max_size=30), st.integers(1, 12))
def test_a_broken_name_keeps_its_characters(name, width):
    assert broken(name, width).replace("\n", "").replace(" ", "") == name.replace(" ", "")


def test_a_name_breaks_after_a_dot():
    assert broken("topology.bottleneck.queue", 12) == "topology.\nbottleneck.\nqueue"


def test_headings_of_all_figures_are_short_enough_to_stay_whole():
    table = Table()
    table.add_name("flow")
    for name in HEADINGS:
        table.add_figure(heading_of(HEADINGS[name], "\n"))
    table.add_row("bbr", *["100.0 ± 10.0"] * len(HEADINGS))
    console = plain(40)
    with console.capture() as capture:
        table.print(console)
    assert max(map(len, printed(capture.get()))) <= 40
