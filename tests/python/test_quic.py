"""QUIC of quinn as a transport of flows in the simulator."""

import json
import math
import statistics

import pytest
from narrows import stacks, sweep
from narrows.backends.sim import Simulator
from narrows.cli.main import main
from narrows.errors import NarrowsError, ScenarioError
from narrows.results import summary
from narrows.results.by_run import read_runs
from narrows.results.measures import measure_run
from narrows.scenario import schema
from narrows.scenario.load import expand, loads
from narrows.scenario.notes import notes
from narrows.scenario.resolve import resolve
from texts import DUMBBELL

QUIC = DUMBBELL + '[[flows]]\ntransport = "quinn"\ncc = {cc}\n'


def run(text, **simulator):
    return sweep.run(loads(text), backend=Simulator(**simulator))


def flows(results):
    return results.flows.to_pylist()


def test_quic_shares_a_link_with_tcp():
    results = flows(run(QUIC.format(cc='"newreno"') + '[[flows]]\ncc = "reno"\n'))
    assert [(flow["name"], flow["cc"]) for flow in results] == [
        ("quinn-newreno", "quinn:newreno"),
        ("reno", "reno"),
    ]
    assert all(flow["goodput_bps"] > 1e6 and flow["rtt_mean_s"] > 0 for flow in results)


def test_scenarios_name_the_stacks_of_the_simulator():
    transport = json.loads(schema.text())["$defs"]["Flow"]["properties"]["transport"]["enum"]
    assert set(transport) == {"tcp", "udp", *stacks.controllers()}


def test_controllers_are_of_quinn_or_of_the_catalogue():
    assert stacks.controllers() == {"quinn": ["bbr", "cubic", "newreno"]}
    (own,), (ours,) = (flows(run(QUIC.format(cc=cc))) for cc in ('"cubic"', '"narrows:cubic"'))
    assert (own["cc"], ours["cc"]) == ("quinn:cubic", "quinn:narrows:cubic")
    assert own["sent_packets"] != ours["sent_packets"]


def test_parameters_are_those_of_the_catalogue():
    (flow,) = flows(run(QUIC.format(cc='{ name = "narrows:cubic", beta = 0.5 }')))
    assert flow["cc"] == "quinn:narrows:cubic(beta=0.5)"


class Fixed:
    flows: list[str] = []

    def __init__(self, segments=20):
        self.segments = segments

    def on_established(self, connection, window):
        window.cwnd = self.segments

    def on_ack(self, ack, window):
        pass

    def on_congestion(self, event, window):
        pass


def test_a_python_controller_drives_quic():
    (flow,) = flows(run(QUIC.format(cc='"fixed"'), congestion={"fixed": Fixed}))
    # The window is 20 segments of 1200 bytes. quinn does not send if the window has room for only one packet.
    limit = 20 * 1200 * 8 / flow["rtt_mean_s"]
    assert 0.8 * limit < flow["goodput_bps"] < limit


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('cc = "cubc"', "flows.0.cc: found 'cubc', expected a congestion controller"),
        (
            'cc = "newren"',
            "flows.0.cc: found 'newren', expected a congestion controller; nearest is 'newreno'",
        ),
        ('cc = "narrows:newreno"', "flows.0.cc: found 'narrows:newreno', expected a congestion controller"),
        ('cc = "dctcp"', 'cc: found "dctcp", expected a controller that QUIC can carry'),
        ('cc = { name = "cubic", beta = 0.5 }', "flows.0.cc.beta: found a parameter of quinn's own cubic"),
        ("pacing = true", "flows.0: expected no pacing with transport = 'quinn'"),
        ("mss = 1000", "flows.0: expected no mss with transport = 'quinn'"),
        ('rate = "1mbit"', "flows.0: expected a rate only with transport = 'udp'"),
    ],
)
def test_a_wrong_key_gets_one_line(keys, message):
    with pytest.raises(ScenarioError) as error:
        run(DUMBBELL + f'[[flows]]\ntransport = "quinn"\n{keys}\n')
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_controller_of_quinn_is_none_for_tcp():
    with pytest.raises(ScenarioError, match="found 'newreno', which is a controller of quinn"):
        run(DUMBBELL + '[[flows]]\ncc = "newreno"\n')


def test_real_stacks_refuse_it():
    scenario = loads(QUIC.format(cc='"cubic"'))
    with pytest.raises(ScenarioError, match=r"flows\.0\.transport: found quinn, expected --on sim"):
        resolve(scenario, ["cubic"], [], "this kernel")


def test_the_receive_window_is_in_packets_of_1200_bytes():
    scenario = loads(QUIC.format(cc='"cubic"') + "receive_window = 20\n")
    (flow,) = resolve(scenario)["flows"]
    assert flow["transport"] == {"kind": "stack", "name": "quinn", "cc": "cubic", "receive_window": 24_000}


def test_notices_know_the_controllers_of_the_stack():
    """The controller `bbr` of quinn is not a preset, and is not in the catalogue."""
    runs = expand(loads(QUIC.format(cc='"bbr"')))
    assert notes(runs) == []


def test_a_sweep_varies_the_controller():
    text = QUIC.format(cc='"cubic"') + "[sweep]\nseeds = 2\n[sweep.vary]\n"
    text += '"flows.quinn-cubic.cc" = ["cubic", "bbr", "reno"]\n'
    table = flows(run(text))
    assert {flow["cc"] for flow in table} == {"quinn:cubic", "quinn:bbr", "quinn:reno"}
    assert len(table) == 6


def test_a_flow_keeps_its_qlog(tmp_path):
    text = QUIC.format(cc='"cubic"') + "[capture]\nqlog = true\n"
    (flow,) = flows(sweep.run(loads(text), out=tmp_path / "out"))
    log = (tmp_path / "out" / "logs" / "0" / "quinn-cubic.sqlog").read_text()
    head, *events = [json.loads(record) for record in log.split("\x1e")[1:]]
    assert head["qlog_format"] == "JSON-SEQ" and head["title"] == "quinn-cubic"
    times = [event["time"] for event in events]
    # The times are in milliseconds of simulated time.
    assert times == sorted(times) and 1900 < times[-1] < 2000
    lost = sum(event["name"] == "recovery:packet_lost" for event in events)
    assert lost == flow["retransmits"] > 0
    again = tmp_path / "again"
    sweep.run(loads(text), out=again)
    assert (again / "logs" / "0" / "quinn-cubic.sqlog").read_text() == log


def test_a_connection_that_quinn_gives_up_is_reported(tmp_path, capsys, monkeypatch):
    """With a large window, losses leave more gaps than quinn 0.11 stores (MAX_CHUNKS)."""
    scenario = tmp_path / "gaps.toml"
    scenario.write_text(
        """
        duration = "4s"
        [topology]
        kind = "dumbbell"
        rate = "200mbit"
        rtt = "100ms"
        queue = "0.5bdp"
        [[flows]]
        transport = "quinn"
        cc = "cubic"
        receive_window = 20000
        """
    )
    monkeypatch.setattr("sys.argv", ["narrows", "run", str(scenario), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    said = " ".join(capsys.readouterr().out.split())
    assert "note: 1 of 1 flows lost their connection (the first: quinn-cubic at" in said
    assert "too many gaps in stream buffer" in said


REQUESTS = """
[[flows]]
name = "page"
transport = "quinn"
requests = { size = "20kB", parallel = 4, count = 30, think = "10ms" }
[[expect]]
measure = "request_time"
args = { statistic = "p95" }
at_most = "2s"
"""


def test_objects_are_requested_and_measured():
    results = run(DUMBBELL + REQUESTS)
    objects = results.requests.to_pylist()
    assert [row["request"] for row in objects] == list(range(30))
    assert {row["size_bytes"] for row in objects} == {20_000}
    times = [1e3 * (row["received_s"] - row["requested_s"]) for row in objects]
    (one,) = read_runs(results)
    assert measure_run("request_time", one).value == pytest.approx(statistics.fmean(times))
    assert measure_run("request_time", one, statistic="p50").value == pytest.approx(statistics.median(times))
    assert math.isnan(measure_run("request_time", one, flows="nobody").value)
    (row,) = summary.flows(results)
    assert 1e3 * row.figures["request_mean_s"].mean == pytest.approx(statistics.fmean(times))
    assert "request_mean_s" in summary.shown_of_flows([row])
    assert measure_run("request_time", one, statistic="max").value == pytest.approx(max(times))
    with pytest.raises(NarrowsError, match="request_time: statistic: found 'p90'"):
        measure_run("request_time", one, statistic="p90")
    (flow,) = flows(results)
    assert flow["delivered_bytes"] == 30 * 20_000
    assert flow["fct_recv_s"] == pytest.approx(max(row["received_s"] for row in objects))


def test_runs_without_requests_have_no_time_of_a_request():
    results = run(QUIC.format(cc='"cubic"'))
    assert results.requests.num_rows == 0
    assert "request_mean_s" not in summary.shown_of_flows(summary.flows(results))
    (one,) = read_runs(results)
    assert math.isnan(measure_run("request_time", one).value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('requests = { size = "1kB" }', "flows.0: expected transport = 'quinn' with requests"),
        ('transport = "quinn"\nsize = "1kB"\nrequests = { size = "1kB" }', "not size and requests"),
        ('transport = "quinn"\nrequests = { size = "1kB", parallel = 0 }', "flows.0.requests.parallel"),
        ('transport = "quinn"\nrequests = { parallel = 2 }', "flows.0.requests.size"),
    ],
)
def test_wrong_requests_are_refused(keys, message):
    with pytest.raises(ScenarioError) as caught:
        resolve(loads(DUMBBELL + "[[flows]]\n" + keys))
    assert message in str(caught.value)
