"""`narrows plot` draws iperf3's JSON."""

import json
import math
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows.errors import OutputError
from narrows.report import figure, iperf3
from narrows.results.iperf3 import read


def stream(end, socket=5, **more):
    seen = {
        "socket": socket,
        "start": end - 1,
        "end": end,
        "bytes": 1_250_000,
        "bits_per_second": 1e7,
        "retransmits": 2,
        "snd_cwnd": 14_480,
        "rtt": 20_500,
        "rttvar": 700,
        "pmtu": 1500,
        "omitted": False,
    }
    return seen | more


def output(*intervals, **more):
    return {"start": {"connecting_to": {"host": "10.0.0.2"}}, "intervals": list(intervals), **more}


@pytest.fixture
def file(tmp_path):
    def make(content, name="run.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return make


@pytest.fixture
def plot(narrows):
    return partial(narrows, "plot")


def panels(path):
    return {
        panel.title: [(row["t"], row["v"]) for row in panel.chart.to_dict()["data"]["values"]]
        for panel in iperf3.draw(read(path)).whole.panels
    }


def test_values_are_in_the_units_of_the_titles(file, monkeypatch):
    monkeypatch.setattr(figure, "VALIDATE", True)
    warm = {"streams": [stream(1, omitted=True)]}
    path = file(output(warm, {"streams": [stream(1)]}, {"streams": [stream(2, retransmits=0)]}))
    assert panels(path) == {
        "Throughput (Mbit/s)": [(0.5, 10.0), (1.5, 10.0)],
        "Data sent (MB)": [(0, 0), (1, 1.25), (2, 2.5)],
        "Congestion window (kB)": [(1, 14.48), (2, 14.48)],
        "Retransmissions (segments per interval)": [(0.5, 2), (1.5, 0)],
        "RTT (ms)": [(1, 20.5), (2, 20.5)],
        "RTT variance (mean deviation, ms)": [(1, pytest.approx(0.7)), (2, pytest.approx(0.7))],
        "MTU (bytes)": [(1, 1500), (2, 1500)],
    }


def test_the_time_axis_covers_all_intervals(file):
    intervals = [{"streams": [stream(end)]} for end in (1, 2, 3)]
    for panel in iperf3.draw(read(file(output(*intervals)))).whole.panels:
        encoding = panel.chart.to_dict()["encoding"]
        assert encoding["x"]["scale"] == {"domain": [0.0, 3.0], "nice": False}
        whole = panel.title.startswith(("Retransmissions", "MTU"))
        assert encoding["y"]["axis"] == ({"format": ",d", "tickMinStep": 1} if whole else {})


@pytest.mark.parametrize(
    ("sender", "protocol", "data", "why"),
    [
        (
            False,
            "TCP",
            "Data received (MB)",
            "only the sender measures them; this file is from a receiver (-R)",
        ),
        (True, "UDP", "Data sent (MB)", "UDP does not have them"),
        (False, "UDP", "Data received (MB)", "UDP does not have them"),
        (True, "TCP", "Data sent (MB)", "the file does not contain them"),
    ],
)
def test_missing_quantities_are_listed_with_the_reason(file, plot, sender, protocol, data, why):
    short = {"socket": 5, "start": 0, "end": 1, "bytes": 10, "bits_per_second": 80, "sender": sender}
    path = file(output({"streams": [short]}, start={"test_start": {"protocol": protocol}}))
    assert list(panels(path)) == ["Throughput (Mbit/s)", data]
    code, _, err = plot(path)
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(f"{path}: no Congestion window, Retransmissions, RTT, RTT variance, MTU: {why}")


def test_data_of_both_directions_has_a_title_for_both(file):
    both = {"streams": [stream(1, sender=True), stream(1, socket=7, sender=False)]}
    assert "Data sent and received (MB)" in panels(file(output(both)))


def test_pictures_have_the_folder_and_stem_of_the_file(file, plot, tmp_path):
    two = output({"streams": [stream(1), stream(1, socket=7, rtt=9_000)]})
    path = file(two, "a.json")
    code, out, err = plot(path)
    assert (code, err) == (0, "")
    alone = ("throughput", "data", "cwnd", "retransmissions", "rtt", "rtt-variance", "mtu")
    assert out.strip().split(", ") == [
        str(tmp_path / f"a.{kind}") for kind in ("svg", "pdf", "png", "vl.json")
    ] + [str(tmp_path / f"a-{quantity}.pdf") for quantity in alone]
    for quantity in alone:
        assert (tmp_path / f"a-{quantity}.pdf").read_bytes().startswith(b"%PDF")
    svg = (tmp_path / "a.svg").read_text()
    assert "stream 5" in svg and "stream 7" in svg and "RTT variance (mean deviation, ms)" in svg
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert plot(path, "--out", tmp_path / "x")[0] == 0 and (tmp_path / "x" / "a.png").exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not JSON: "),
        ([], "found no intervals, expected the output of iperf3 --json"),
        ({"error": "unable to connect"}, "iperf3 says 'unable to connect'"),
        (output(), "found no interval with a stream"),
        (output({"streams": [{"socket": 1}]}), "intervals.0: found a stream without start and end"),
        (output({"streams": [stream(1, socket=n) for n in range(9)]}), "found 9 streams, expected at most 8"),
    ],
)
def test_a_file_that_is_not_a_run_gives_a_one_line_error(file, plot, tmp_path, content, complaint):
    good = file(output({"streams": [stream(1)]}), "good.json")
    code, out, err = plot(good, file(content))
    assert (code, out, err.count("\n")) == (2, "", 1) and complaint in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.json", "run.json"], (
        "no incomplete file is left"
    )


def test_two_files_with_the_same_picture_name_give_a_one_line_error(plot, tmp_path):
    text = json.dumps(output({"streams": [stream(1)]}))
    for folder in ("r1", "r2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "iperf3.json").write_text(text)
        (tmp_path / folder / "iperf3.txt").write_text(text)
    first, second = (tmp_path / folder / "iperf3.json" for folder in ("r1", "r2"))
    code, out, err = plot(first, second, "--out", tmp_path / "pics")
    assert (code, out, err.count("\n")) == (2, "", 1) and str(first) in err and str(second) in err
    assert not (tmp_path / "pics").exists()
    assert plot(first, first.with_suffix(".txt"))[0] == 2 and not (tmp_path / "r1" / "iperf3.svg").exists()
    assert plot(first, second)[0] == 0 and (tmp_path / "r2" / "iperf3.svg").exists()


def test_each_panel_is_also_a_figure_with_the_same_values_and_the_legend(file):
    drawn = iperf3.draw(read(file(output({"streams": [stream(1), stream(1, socket=7)]}))))
    whole, each = drawn.whole, drawn.each
    assert [panel.title for panel in whole.panels] == [of.panels[0].title for of in each.values()]
    for of, panel in zip(each.values(), whole.panels, strict=True):
        assert of.panels[0] is panel, "the panel is drawn only once"
        assert len(of.panels) == 1 and [key.label for key in of.keys] == ["stream 5", "stream 7"]
        assert of.panels[0].chart.to_dict()["data"] == panel.chart.to_dict()["data"]


def test_a_quantity_that_a_file_lacks_has_no_pdf(file, plot, tmp_path):
    without = {key: value for key, value in stream(1).items() if key != "pmtu"}
    assert plot(file(output({"streams": [without]})))[0] == 0
    assert (tmp_path / "run-rtt.pdf").exists() and not (tmp_path / "run-mtu.pdf").exists()


def test_a_panel_never_overwrites_the_figure_of_another_file(file, plot, tmp_path):
    text = json.dumps(output({"streams": [stream(1)]}))
    first, second = file(text, "run.json"), file(text, "run-rtt.json")
    code, out, err = plot(first, second)
    assert (code, out, err.count("\n")) == (2, "", 1) and str(first) in err and str(second) in err
    assert not list(tmp_path.glob("*.pdf"))


def test_a_picture_never_overwrites_the_measured_file(file, plot, tmp_path):
    text = json.dumps(output({"streams": [stream(1)]}))
    for names in (["run.svg"], ["a.json", "a.vl.json"]):
        paths = [file(text, name) for name in names]
        code, out, err = plot(*paths)
        assert (code, out, err.count("\n")) == (2, "", 1) and str(paths[-1]) in err
        assert [path.read_text() for path in paths] == [text] * len(paths)
    assert plot(tmp_path / "run.svg", "--out", tmp_path / "x")[0] == 0


def test_a_folder_with_the_name_of_a_picture_is_reported(file, plot, tmp_path):
    (tmp_path / "run.svg").mkdir()
    said = plot(file(output({"streams": [stream(1)]})))
    assert said == (2, "", f"{tmp_path / 'run.svg'}: Is a directory\n")


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ({"bits_per_second": "fast"}, "bits_per_second: found 'fast'"),
        ({"rtt": [1]}, "rtt: found a list of 1"),
        ({"snd_cwnd": None}, "snd_cwnd: found null"),
        ({"rttvar": True}, "rttvar: found true"),
        ({"retransmits": -2}, "retransmits: found -2"),
        ({"bytes": 10**300}, "bytes: found 1000000000000"),
        ({"bits_per_second": math.nan}, "bits_per_second: found nan"),
    ],
)
def test_an_invalid_value_gives_a_one_line_error(file, plot, tmp_path, wrong, shown):
    good = file(output({"streams": [stream(1)]}), "good.json")
    bad = file(output({"streams": [stream(1)]}, {"streams": [stream(2, **wrong)]}))
    code, out, err = plot(good, bad)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{bad}: {shown}")
    assert err.endswith(" in the interval that ends at 2 s, expected a number from 0 to 1e+18\n")
    assert not list(tmp_path.glob("*.svg")), "no incomplete file is left"


def test_values_that_iperf3_could_not_read_are_left_out(file):
    unknown = stream(1, rtt=-1, snd_cwnd=-1)
    shown = panels(file(output({"streams": [unknown]}, {"streams": [stream(2)]})))
    assert [t for t, _ in shown["RTT (ms)"]] == [2]


def test_the_description_of_a_run_may_be_missing(file, plot, tmp_path):
    strange = output(
        {"streams": [stream(1, socket="\ud800"), stream(2)]},
        start={"connecting_to": None},
        end={"sender_tcp_congestion": "\udfff"},
    )
    code, _, err = plot(file(strange))
    assert (code, err) == (0, "") and (tmp_path / "run.svg").exists()
    assert "Data sent (MB)" in panels(tmp_path / "run.json")


VALUE = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 1e308])
    | st.text(max_size=4)
)
KEYS = ("connecting_to", "host", "sender_tcp_congestion", "streams", "intervals", "start", "end", *stream(1))
JSON = st.recursive(
    VALUE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
NUMBER = st.floats(0, 1e6) | VALUE
STREAM = st.fixed_dictionaries(
    {"start": st.floats(0, 9), "end": st.floats(0, 9)},
    optional={key: NUMBER for key in stream(1) if key not in ("start", "end")},
)
RUN = st.fixed_dictionaries(
    {"intervals": st.lists(st.fixed_dictionaries({"streams": st.lists(STREAM, max_size=3)}), max_size=3)},
    optional={
        "start": JSON | st.fixed_dictionaries({"connecting_to": JSON}),
        "end": JSON | st.fixed_dictionaries({"sender_tcp_congestion": JSON}),
    },
)
"""JSON that resembles iperf3's output."""


@given(JSON | RUN)
@settings(max_examples=300, deadline=None)
def test_any_json_gives_a_picture_or_one_line(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(json.dumps(data))
    try:
        iperf3.draw(read(path))
    except OutputError as error:
        assert "\n" not in str(error)


def test_plot_of_a_folder_names_the_command_for_results(tmp_path, narrows):
    line = (
        f"{tmp_path}: found a folder, expected a file that iperf3 --json wrote; for results: narrows report"
    )
    assert narrows("plot", tmp_path) == (2, "", f"{line} {tmp_path}\n")
