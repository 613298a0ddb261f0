"""Capacity traces."""

import pytest
from narrows import _native
from narrows.errors import ScenarioError
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import survey


def read(tmp_path, text, file="t", **keys):
    """The plan of a bottleneck with this trace, its mean rate, and its highest rate."""
    if text is not None:
        (tmp_path / "t").write_text(text)
    topology = {"kind": "dumbbell", "rtt": "20ms", "trace": {"file": file, **keys}}
    seen = survey(Scenario(topology=topology, flows=[{}]).with_source(str(tmp_path / "x.toml")))
    bottleneck, access = seen.graph.links[0], seen.graph.links[2]
    return seen.plan["links"][0]["rate"], bottleneck.rate, access.rate // _native.ACCESS_FACTOR


def test_mahimahi(tmp_path):
    plan, mean, _ = read(tmp_path, "0\n5\n5\n10\n")
    assert plan == {
        "kind": "opportunities",
        "millis": [0, 5, 5, 10],
        "period_millis": 10,
        "bytes": 1500,
    }
    assert mean == 4 * 1500 * 8 * 100


def test_csv_with_a_header(tmp_path):
    keys = {"format": "csv", "time": "t", "rate": "down", "unit": "kbit/s", "time_unit": "ms"}
    plan, mean, peak = read(tmp_path, "t,up,down\n500,1,800\n1500,1,1600\n2500,1,0\n", **keys)
    assert plan == {
        "kind": "steps",
        "steps": [(0, 100_000), (10**9, 200_000), (2 * 10**9, 0)],
        "period": 3 * 10**9,
    }
    assert (mean, peak) == (800_000, 1_600_000)


def test_two_plain_columns(tmp_path):
    plan, _, _ = read(tmp_path, "0 1.5\n1 3\n", format="csv", repeat=False)
    assert plan["steps"] == [(0, 187_500), (10**9, 375_000)]
    assert plan["period"] is None


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("", {}, "t: line 1: found an empty trace"),
        ("1\n-2\n", {}, "t: line 2: found '-2', expected whole milliseconds"),
        ("1\n2.5\n", {}, "t: line 2: found '2.5'"),
        ("5\n\n3\n", {}, "t: line 3: found 3 after 5, expected times that do not decrease"),
        ("0\n0\n", {}, "t: line 2: found a trace of 0 ms"),
        ("99999999999\n", {}, "t: line 1: found '99999999999'"),
        ("0,1\n1,\n", {"format": "csv"}, "t: line 2: found '' for rate, expected a number"),
        ("0,1\n1\n", {"format": "csv"}, "t: line 2: found '' for rate"),
        ("0,1\n1,nan\n", {"format": "csv"}, "t: line 2: found 'nan' for rate"),
        ("0,1\n1,-1\n", {"format": "csv"}, "t: line 2: found a rate of -1"),
        ("0,1\n0,2\n", {"format": "csv"}, "t: line 2: found a time that is not after the one before"),
        ("1,1\n0,2\n", {"format": "csv"}, "t: line 2: found a time that is not after"),
        ("0,1\n1,1\n99,1\n100,1\n", {"format": "csv"}, "t: line 3: found a gap of 98s, expected at most 10s"),
        ("0,0\n1,0\n", {"format": "csv"}, "t: line 1: found no rate above zero"),
        ("t,r\n", {"format": "csv"}, "t: line 1: found a header only"),
        ("0,1\n", {"format": "csv", "unit": "furlong"}, "unit: found 'furlong', expected a unit such as"),
        (
            "t,rate\n0,1\n",
            {"format": "csv", "rate": "rte"},
            "rate: found 'rte', expected a column; nearest is 'rate'",
        ),
        (
            "0,1\n",
            {"format": "csv", "rate": "x"},
            "rate: found 'x', expected a number: the trace has no header",
        ),
        ("0.0,5.2\n", {}, "t: line 1: found '0.0,5.2', expected whole milliseconds; is it format = \"csv\"?"),
        ("1.5\n", {}, "t: line 1: found '1.5', expected whole milliseconds"),
        ("0,1\n", {"format": "csv", "rate": 7}, "rate: found 7, expected a column from 0 to 1"),
        ("0\n10\n70011\n", {}, "t: line 3: found a gap of 70 s, expected at most 60 s"),
    ],
)
def test_errors_name_the_line(tmp_path, text, keys, message):
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, text, **keys)
    # An error about the trace's content names only the trace.
    place = f"{tmp_path / 'x.toml'}: topology.trace."
    assert str(caught.value).removeprefix(place).startswith(message)


def test_a_missing_file(tmp_path):
    with pytest.raises(ScenarioError, match="expected a readable file"):
        read(tmp_path, None, file="none")
    with pytest.raises(ScenarioError, match="expected a readable file"):
        read(tmp_path, None, file="a\0b")


def test_a_trace_that_changed_is_read_again(tmp_path):
    assert read(tmp_path, "0\n10\n")[0]["period_millis"] == 10
    (tmp_path / "t").unlink()
    assert read(tmp_path, "0\n20\n")[0]["period_millis"] == 20
