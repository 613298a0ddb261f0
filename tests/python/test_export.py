"""`narrows export` writes the values of the tables in each format."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrows.cli.commands.values import EXPORTS
from narrows.cli.export import FORMATS, export
from narrows.errors import NarrowsError, OutputError
from narrows.export import perfetto
from narrows.export.perfetto import STATES
from narrows.export.run import file_names
from narrows.results.by_run import read_runs
from narrows.results.columns import COLUMNS
from narrows.results.results import Results
from narrows.results.runs import Run
from narrows.scenario.load import loads
from narrows.sweep import run as sweep

ROOT = Path(__file__).parents[2]
SCENARIO = """
name = "two"
duration = "6s"
seed = 3

[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "30ms"
queue = "30p"

[[flows]]
name = "first/flow"
cc = "cubic"

[[flows]]
name = "late"
cc = "bbr"
start = "2s"
stop = "5s"

[[flows]]
name = "voice"
transport = "udp"
rate = "1mbit"

[probes]
interval = "50ms"
traces = true
"""

LABELS = {
    "TCP upload::1": "first/flow (cubic)",
    "TCP upload::2": "late (bbr)",
    "UDP upload::1": "voice (udp)",
}

BASE = """
duration = "3s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "30ms"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("narrows._native")
    folder = tmp_path_factory.mktemp("results")
    sweep(loads(SCENARIO), seeds=2, out=folder)
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[Run]:
    return list(read_runs(Results.read(folder)))


def _row(run: Run, name: str) -> int:
    return run.names("flows", "name").index(name)


def _trace(path: Path) -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def _processes(trace: list[dict[str, Any]]) -> dict[str, int]:
    return {event["args"]["name"]: event["pid"] for event in trace if event["name"] == "process_name"}


def _counter(trace: list[dict[str, Any]], process: int, name: str) -> tuple[list[float], list[float]]:
    found = [e for e in trace if e["ph"] == "C" and e["pid"] == process and e["name"] == name]
    return [event["ts"] for event in found], [event["args"]["value"] for event in found]


def test_perfetto_has_the_samples_of_each_flow_and_link(
    folder: Path, runs: list[Run], tmp_path: Path
) -> None:
    export("perfetto", folder, (), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-0.json.gz", "run-1.json.gz"]
    trace = _trace(tmp_path / "run-1.json.gz")
    processes = _processes(trace)
    assert {"run 1, seed 4", "flow first/flow, cubic", "flow late, bbr", "link bottleneck"} <= set(processes)
    times, windows = _counter(trace, processes["flow first/flow, cubic"], "cwnd, segments")
    t, cwnd = runs[1].flow_series(_row(runs[1], "first/flow"), "cwnd")
    assert times == pytest.approx(t * 1e6) and windows == pytest.approx(cwnd)
    # The export gives each mean the time at which its interval starts.
    times, goodput = _counter(trace, processes["flow first/flow, cubic"], "goodput, Mbit/s")
    t, bits = runs[1].flow_series(_row(runs[1], "first/flow"), "goodput_bps")
    assert times == pytest.approx((t - 0.05) * 1e6, abs=1) and goodput == pytest.approx(bits / 1e6)
    # When a flow ends, the export sets its counters to 0. Otherwise, the viewer would go on to show the last
    # value.
    times, windows = _counter(trace, processes["flow late, bbr"], "cwnd, segments")
    (end,) = runs[1].column("flows", "end_s")[[_row(runs[1], "late")]]
    assert windows[-1] == 0.0 and times[-1] == pytest.approx(end * 1e6) and min(windows[:-1]) > 0
    row = runs[1].link("bottleneck")
    _, drops = _counter(trace, processes["link bottleneck"], "drops")
    assert sum(drops) == runs[1].column("links", "dropped_packets")[row] > 0


def test_perfetto_has_lifetimes_states_and_traces(folder: Path, runs: list[Run], tmp_path: Path) -> None:
    export("perfetto", folder, (0,), tmp_path)
    trace = _trace(tmp_path / "run-0.json.gz")
    processes = _processes(trace)
    slices = [event for event in trace if event["ph"] == "X"]
    (life,) = (event for event in slices if event["name"] == "late")
    assert life["pid"] == processes["flow late, bbr"] and life["ts"] == 2e6
    ends = runs[0].column("flows", "end_s")
    assert life["dur"] == pytest.approx((ends[_row(runs[0], "late")] - 2) * 1e6)
    t, states = runs[0].flow_series(_row(runs[0], "first/flow"), "state")
    own = [e for e in slices if e["pid"] == processes["flow first/flow, cubic"] and e["name"] != "first/flow"]
    assert {event["name"] for event in own} <= {"disorder", "CWR", "recovery", "loss"}
    covered = sum(int(((t * 1e6 >= e["ts"] - 1) & (t * 1e6 < e["ts"] + e["dur"] - 1)).sum()) for e in own)
    assert covered == np.count_nonzero(states) > 0
    names = {event["name"] for event in trace if event["pid"] == processes["flow late, bbr"]}
    assert set(runs[0].names("traces", "key")) & names


def _documented(after: str, before: str) -> list[str]:
    """The names in the first column of a table of the guide."""
    text = (ROOT / "docs/how-to/perfetto.md").read_text(encoding="utf-8")
    table = text.split(f"<!-- {after} -->")[1].split(f"<!-- {before} -->")[0]
    return re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)


def test_the_guide_to_perfetto_lists_the_tracks_of_a_trace(folder: Path, tmp_path: Path) -> None:
    flow, link = _documented("flow tracks", "link tracks"), _documented("link tracks", "end of tracks")
    assert flow == [counter.title for counter in perfetto.FLOW]
    assert link == [counter.title for counter in perfetto.LINK]
    export("perfetto", folder, (0,), tmp_path)
    trace = _trace(tmp_path / "run-0.json.gz")
    kinds = {place: name.split()[0] for name, place in _processes(trace).items()}
    tracks: dict[str, set[str]] = {"run": set(), "flow": set(), "link": set()}
    for event in trace:
        if event["ph"] == "C":
            tracks[kinds[event["pid"]]].add(event["name"])
    # The other tracks of flows are variables of controllers.
    assert tracks["flow"] & {"cwnd, segments", "goodput, Mbit/s"} and tracks["link"] <= set(link)
    threads = {(kinds[e["pid"]], e["args"]["name"]) for e in trace if e["name"] == "thread_name"}
    assert threads == {("flow", "lifetime"), ("flow", "TCP state")}


def test_perfetto_traces_of_equal_runs_are_equal_bytes(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        export("perfetto", folder, (0,), tmp_path / name)
    one, two = ((tmp_path / name / "run-0.json.gz").read_bytes() for name in ("one", "two"))
    assert one == two


def test_flent_reads_its_file(folder: Path, runs: list[Run], tmp_path: Path) -> None:
    resultset = pytest.importorskip("flent.resultset")
    export("flent", folder, (1,), tmp_path)
    read = resultset.load(str(tmp_path / "run-1.flent.gz"))
    assert read.meta("NAME") == "tcp_nup" and read.meta("TEST_PARAMETERS") == {"upload_streams": "2"}
    assert {name: meta["LABEL"] for name, meta in read.meta("SERIES_META").items()} == LABELS
    assert set(read.series_names) == {
        *("TCP upload::1", "TCP upload::2", "UDP upload::1"),
        *("TCP upload avg", "TCP upload sum", "TCP upload fairness"),
    }
    t, goodput = runs[1].flow_series(_row(runs[1], "first/flow"), "goodput_bps")
    assert read.x_values == pytest.approx(t) and read.series("TCP upload::1") == pytest.approx(goodput / 1e6)
    # Until the second flow starts, the sum is the value of the first flow.
    late = read.series("TCP upload::2")
    assert late[10] is None and read.series("TCP upload sum")[10] == read.series("TCP upload::1")[10]
    middle = len(t) // 2
    both = [read.series(f"TCP upload::{number}")[middle] for number in (1, 2)]
    assert read.series("TCP upload sum")[middle] == pytest.approx(sum(both))
    fairness = sum(both) ** 2 / (2 * sum(value**2 for value in both))
    assert read.series("TCP upload fairness")[middle] == pytest.approx(fairness)
    rtts = dict(read.raw_series("TCP upload::1", raw_key="tcp_rtt"))
    t, rtt = runs[1].flow_series(_row(runs[1], "first/flow"), "srtt_s")
    assert list(rtts) == pytest.approx(t[np.isfinite(rtt)], abs=1e-5)
    assert list(rtts.values()) == pytest.approx(rtt[np.isfinite(rtt)] * 1e3)


def test_qlog_has_the_windows_and_rtts_of_each_tcp_flow(
    folder: Path, runs: list[Run], tmp_path: Path
) -> None:
    export("qlog", folder, (0,), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-0-first_flow.sqlog", "run-0-late.sqlog"]
    text = (tmp_path / "run-0-first_flow.sqlog").read_text(encoding="utf-8")
    # RFC 7464: each record begins with a record separator and ends with a line feed.
    assert text.startswith("\x1e") and text.endswith("\n")
    header, *records = (json.loads(record) for record in text.split("\x1e")[1:])
    assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert header["trace"]["title"] == "first/flow (cubic)"
    metrics = [record for record in records if record["name"] == "recovery:metrics_updated"]
    t, cwnd = runs[0].flow_series(_row(runs[0], "first/flow"), "cwnd")
    assert [record["time"] for record in metrics] == pytest.approx(t * 1e3)
    assert [record["data"]["congestion_window"] for record in metrics] == [int(w) * 1448 for w in cwnd]
    _, srtt = runs[0].flow_series(_row(runs[0], "first/flow"), "srtt_s")
    assert [record["data"]["smoothed_rtt"] for record in metrics] == pytest.approx(srtt * 1e3)
    states = [record["data"]["new"] for record in records if record["name"].endswith("state_updated")]
    assert states[0] == "slow_start" and "congestion_avoidance" in states
    assert all(one != two for one, two in pairwise(states))


def test_flent_draws_its_file(folder: Path, tmp_path: Path) -> None:
    """The output format `summary` of flent needs the metadata of a plot."""
    pytest.importorskip("flent")
    export("flent", folder, (0,), tmp_path)
    command = [sys.executable, "-m", "flent", "-i", str(tmp_path / "run-0.flent.gz"), "-f", "summary"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"TCP upload::1 +: +\d+\.\d+ ", done.stdout)
    text = json.loads(gzip.decompress((tmp_path / "run-0.flent.gz").read_bytes()))
    assert text["metadata"]["LOCAL_HOST"] == "", "plots read this key"
    assert text["metadata"]["NOTE"].startswith("narrows, seed 3: TCP upload::1 = first/flow (cubic), ")


@pytest.mark.parametrize("date_s", [0.0, 1_700_000_000.0, 1_700_000_000.25])
def test_flent_reads_every_date(folder: Path, date_s: float, tmp_path: Path) -> None:
    resultset = pytest.importorskip("flent.resultset")
    os.utime(folder / "metadata.json", (date_s, date_s))
    export("flent", folder, (0,), tmp_path)
    assert resultset.load(str(tmp_path / "run-0.flent.gz")).meta("TIME").timestamp() is not None


def test_flent_has_no_sums_without_uploads(tmp_path: Path) -> None:
    pytest.importorskip("narrows._native")
    resultset = pytest.importorskip("flent.resultset")
    text = BASE + "[[flows]]\ntransport = 'udp'\nrate = '1mbit'\n"
    sweep(loads(text), out=tmp_path / "r")
    export("flent", tmp_path / "r", (), None)
    assert resultset.load(str(tmp_path / "r/flent/run-0.flent.gz")).series_names == ["UDP upload::1"]


def test_a_short_flow_begins_with_its_interval(tmp_path: Path) -> None:
    """A flow has a single sample. The interval of this sample must not begin at 0."""
    pytest.importorskip("narrows._native")
    text = BASE + "[[flows]]\nname = 'short'\nsize = '20kB'\nstart = '1.95s'\n"
    sweep(loads(text), out=tmp_path / "r")
    export("perfetto", tmp_path / "r", (), None)
    trace = _trace(tmp_path / "r/perfetto/run-0.json.gz")
    times, _ = _counter(trace, _processes(trace)["flow short, cubic"], "goodput, Mbit/s")
    assert times[0] == pytest.approx(1.9e6)


def test_qlog_knows_the_segments_and_the_stack_of_each_run(tmp_path: Path) -> None:
    pytest.importorskip("narrows._native")
    flows = "[[flows]]\ncc = 'cubic'\n[[flows]]\ntransport = 'quinn'\ncc = 'cubic'\n"
    vary = "[sweep.vary]\n'flows.0.mss' = [1448, 4000]\n"
    sweep(loads(BASE + flows + vary), out=tmp_path / "r")
    export("qlog", tmp_path / "r", (), None)
    found = sorted((tmp_path / "r/qlog").iterdir())
    assert [path.name for path in found] == ["run-0-cubic.sqlog", "run-1-cubic.sqlog"], (
        "QUIC has its own qlog"
    )
    for path, run, mss in zip(found, read_runs(Results.read(tmp_path / "r")), (1448, 4000), strict=True):
        _, *records = (json.loads(record) for record in path.read_text().split("\x1e")[1:])
        _, cwnd = run.flow_series(_row(run, "cubic"), "cwnd")
        sizes = [r["data"]["congestion_window"] for r in records if r["name"] == "recovery:metrics_updated"]
        assert sizes == [int(window) * mss for window in cwnd]


def test_each_flow_has_a_file_of_its_own() -> None:
    names = ["a/b", "a_b", "A_B", "..", "x" * 300, "\U00020000" * 64]
    found = file_names(names)
    assert len({name.lower() for name in found}) == len(names)
    assert all(name.isascii() and len(name) <= 110 and not name.startswith(".") for name in found)


def test_files_of_earlier_results_do_not_stay(tmp_path: Path) -> None:
    pytest.importorskip("narrows._native")
    for seeds, count in ((3, 3), (1, 1)):
        sweep(loads(BASE + "[[flows]]\n"), seeds=seeds, out=tmp_path / "r")
        export("flent", tmp_path / "r", (), None)
        assert len(list((tmp_path / "r/flent").iterdir())) == count


def test_a_url_is_no_folder_for_files(folder: Path) -> None:
    with pytest.raises(NarrowsError, match="--out: found 's3://bucket/x', expected a folder"):
        export("flent", folder, (), Path("s3://bucket/x"))


def test_an_unknown_format(folder: Path) -> None:
    with pytest.raises(NarrowsError, match="FORMAT: found 'foo', expected one of perfetto, flent, qlog"):
        export("foo", folder, (), None)


def test_the_states_are_those_of_the_table() -> None:
    (column,) = (column for column in COLUMNS["flow_samples"] if column.name == "state")
    assert column.meaning.startswith(", ".join(f"{number} {name}" for number, name in enumerate(STATES)))


def test_completion_offers_the_formats() -> None:
    assert tuple(FORMATS) == EXPORTS


def test_a_run_that_does_not_exist(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NarrowsError, match=r"--run: found 7, expected a run of .*, 0 to 1"):
        export("flent", folder, (7,), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_results_without_samples(tmp_path: Path) -> None:
    pytest.importorskip("narrows._native")
    text = SCENARIO.replace('interval = "50ms"', "flows = false").replace("traces = true", "")
    sweep(loads(text), out=tmp_path / "results")
    with pytest.raises(NarrowsError, match="found no flow to export as qlog, expected one with samples"):
        export("qlog", tmp_path / "results", (), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(OutputError):
        export("perfetto", folder, (), tmp_path / "file")


def test_results_at_a_url_need_a_folder() -> None:
    with pytest.raises(OutputError, match="--out: found nothing, expected a folder"):
        export("perfetto", Path("s3://bucket/results"), (), None)
