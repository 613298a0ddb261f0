"""Results in a notebook: HTML, charts, lazy frames."""

import ast
import json
from pathlib import Path

import narrows
import pytest
from narrows.errors import NarrowsError
from narrows.results.results import Results

pytest.importorskip("altair")
pytest.importorskip("polars")
TEXT = """
name = "a<b"
duration = "3s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
loss = "0.1%"
[[flows]]
name = "one"
[[flows]]
name = "two"
cc = "bbr"
[sweep]
seeds = 2
vary = { "topology.rate" = ["10mbit", "5mbit"] }
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return narrows.run(narrows.loads(TEXT.replace("a<b", "ab")), out=tmp_path_factory.mktemp("out"))


def values(chart):
    """All rows of a chart's data."""
    found = []

    def visit(part):
        if isinstance(part, dict):
            data = part.get("data", {})
            found.extend(data.get("values", []) if isinstance(data, dict) else [])
            for rows in part.get("datasets", {}).values():
                found.extend(rows)
            for inner in part.values():
                visit(inner)
        elif isinstance(part, list):
            for inner in part:
                visit(inner)

    visit(chart.to_dict(validate=False))
    return found


def test_the_summary_is_html_with_names_as_text(results):
    text = results._repr_html_()
    assert text.count("<table>") == 2 and "one" in text and "5mbit" in text
    made = narrows.run(narrows.loads(TEXT))
    assert "a&lt;b" in made._repr_html_() and "a<b" not in made._repr_html_()


def test_the_figure_over_time_is_of_the_chosen_point(results):
    drawn = {name: values(results.plot.time(**{"topology.rate": name})) for name in ("10mbit", "5mbit")}
    assert {row["s"] for row in drawn["10mbit"] if "t" in row} == {"one", "two"}
    assert drawn["10mbit"] != drawn["5mbit"]
    assert any(row.get("s") == "bottleneck" for row in values(results.plot.time(flows=False)))


def test_charts_can_be_saved_and_shown(results, tmp_path):
    for chart in (results.plot.time(), results.plot.share(), results.plot.cdf()):
        chart.save(tmp_path / "a.svg")
        assert (tmp_path / "a.svg").read_text().startswith("<svg")
        assert chart._repr_mimebundle_() is not None


def test_shares_are_those_of_the_summary(results):
    rows = [row for row in values(results.plot.share(**{"topology.rate": "5mbit"})) if "low" in row]
    assert {row["s"] for row in rows} == {"one", "two"} and len(rows) == 2
    assert sum(row["y"] for row in rows) == pytest.approx(100.0)
    assert all(row["low"] <= row["y"] <= row["high"] for row in rows)


@pytest.mark.parametrize("quantity", ["rtt", "sojourn"])
def test_a_distribution_rises_from_0_to_1(results, quantity):
    rows = [row for row in values(results.plot.cdf(quantity)) if "x" in row and "s" in row]
    for name in {row["s"] for row in rows}:
        line = [(row["x"], row["y"]) for row in rows if row["s"] == name]
        assert line == sorted(line) and (line[0][1], line[-1][1]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda plot: plot.cdf("rt"), "quantity: found 'rt', expected one of rtt, sojourn; nearest is 'rtt'"),
        (
            lambda plot: plot.time(rate=1),
            "factor: found 'rate', expected one of topology.rate",
        ),
        (lambda plot: plot.time(**{"topology.rate": "1mbit"}), "found no run with topology.rate = 1mbit"),
    ],
)
def test_mistakes_are_one_line(results, call, message):
    with pytest.raises(NarrowsError) as error:
        call(results.plot)
    assert str(error.value) == message


def test_a_lazy_frame_reads_the_file(results):
    import polars as pl

    again = Results.read(results.folder)
    frame = again.scan("flows").group_by("name").agg(pl.col("goodput_bps").mean()).sort("name").collect()
    assert frame["name"].to_list() == ["one", "two"]
    assert "flows" not in again._loaded
    assert narrows.run(narrows.loads(TEXT)).scan("flows").collect().height == 8
    with pytest.raises(NarrowsError, match="found table 'flow'"):
        again.scan("flow")


# --- the notebook

NOTEBOOK = Path(__file__).parents[2] / "notebooks/buffers.ipynb"


def shown(cell, names):
    """The value of a cell's last expression, which a notebook displays."""
    code = ast.parse("".join(cell["source"]))
    last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
    exec(compile(code, str(NOTEBOOK), "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def test_each_cell_of_the_notebook_runs_and_shows_its_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)
    names = {}
    results = [value for cell in cells if (value := shown(cell, names)) is not None]
    kinds = [type(value).__name__ for value in results]
    assert kinds == ["Results", "DataFrame", "VConcatChart", "VConcatChart", "VConcatChart", "DataFrame"]
    for value in results:
        has_html = getattr(value, "_repr_html_", None)
        assert (has_html and has_html()) or value.to_dict(validate=False)["$schema"]
    # The text of the notebook describes the relations that this test checks.
    shares = results[1]
    assert shares["bbr"]["0.25bdp"] > 2 * shares["cubic"]["0.25bdp"]
    assert shares["cubic"]["4bdp"] > shares["bbr"]["4bdp"]


def test_duckdb_reads_a_folder_of_results(results, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    folder = results.folder
    rows = duckdb.sql(
        f"SELECT name, seed FROM '{folder}/flows.parquet' JOIN '{folder}/runs.parquet' USING (run)"
    ).fetchall()
    assert len(rows) == len(results.flows) and {name for name, _ in rows} == {"one", "two"}
