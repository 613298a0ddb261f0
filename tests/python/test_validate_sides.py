"""Plans that a validation gives to the backends, and figures that it takes from their tables."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from narrows import _native
from narrows.errors import NarrowsError
from narrows.results.results import SOUNDNESS, Results
from narrows.scenario.load import expand, loads
from narrows.scenario.resolve import resolve, survey
from narrows.validate import grid, measures
from narrows.validate.grid import Flows


@pytest.mark.parametrize("cell", grid.full(), ids=lambda cell: cell.name)
def test_both_backends_get_the_network_of_the_cells_name(cell):
    found = survey(loads(grid.scenario(cell, "vegas", "10s")))
    links = found.plan["links"]
    (bottleneck,) = (link for link in links if link["name"] == "bottleneck")
    way_back = links[links.index(bottleneck) + 1]
    rtts = [sum(links[link]["delay"][0][1] for link in path.forth + path.back) / 1e6 for path in found.paths]
    expected = {Flows.SINGLE: [1], Flows.CUBIC: [1, 1], Flows.RTTS: [1, 5]}[cell.flows]
    assert rtts == [cell.rtt * times for times in expected]
    assert bottleneck["rate"]["steps"] == [(0, cell.rate * 125_000)]
    product_packets = cell.rate * 1e6 * cell.rtt / 1e3 / 8 / 1500
    assert bottleneck["queue"]["limit"]["packets"] == pytest.approx(cell.buffer * product_packets, abs=0.51)
    loss = [model["p"] for _, model in bottleneck["loss"]]
    assert loss == ([cell.loss / 100] if cell.loss else [])
    assert way_back["jitter"]["max"] == pytest.approx(1500 * 8 / cell.rate * 1e3, abs=1e3)
    others = [link for link in links if link is not bottleneck]
    assert min(link["rate"]["steps"][0][1] for link in others) == 10 * cell.rate * 125_000
    assert not any(link["loss"] for link in others)
    assert all(link["queue"]["limit"] == {"packets": None, "bytes": None} for link in others)


def kept(disturbed: tuple[int, ...] = ()) -> Results:
    """Two runs of one flow. After the warm-up, the windows of the first run are 10 and 30 segments."""
    soundness = {str(run): {"sound": run not in disturbed} for run in (0, 1)}
    flows = [
        {
            "run": run,
            "flow": 0,
            "name": "near",
            "source": "near",
            "cc": "vegas",
            "goodput_bps": 1e6 * (run + 1),
            "sent_packets": 100 * run,
            "retransmits": 3,
        }
        for run in (0, 1)
    ]
    samples = [
        {"run": run, "flow": 0, "t_s": t, "cwnd": cwnd + run, "srtt_s": srtt, "goodput_bps": 1e6}
        for run in (0, 1)
        for t, cwnd, srtt in (
            (0.5, 99.0, 9.0),
            (1.0, 98.0, 9.0),
            (1.5, 10.0, 0.02),
            (2.0, 30.0, 0.04),
        )
    ]
    return Results(
        {"warmup_s": 1.0, SOUNDNESS: soundness},
        {
            "runs": pa.Table.from_pylist([{"run": 0, "seed": 7}, {"run": 1, "seed": 8}]),
            "flows": pa.Table.from_pylist(flows),
            "flow_samples": pa.Table.from_pylist(samples),
        },
    )


def test_figures_exclude_the_warm_up():
    near = measures.sides(kept())["near"]
    assert near.seeds == [7, 8]
    assert near.figures["goodput_bps"] == [1e6, 2e6]
    assert near.figures["rtt_mean_s"] == [pytest.approx(0.03)] * 2
    assert near.figures["rtt_p95_s"] == [0.04] * 2
    assert near.figures["cwnd_mean"] == [20.0, 21.0]
    assert math.isnan(near.figures["resent"][0]) and near.figures["resent"][1] == 0.03
    assert [list(t) for t, _ in near.windows] == [[1.5, 2.0]] * 2


def test_a_disturbed_run_has_no_figures():
    near = measures.sides(kept(disturbed=(0,)))["near"]
    assert near.seeds == [8] and near.runs == 1 and near.figures["goodput_bps"] == [2e6]
    aside = measures.sides(kept(disturbed=(0,)), disturbed=True)["near"]
    assert aside.seeds == [7] and aside.figures["goodput_bps"] == [1e6]


LINE = """
duration = "5s"
[topology]
kind = "dumbbell"
rate = "{rate}"
rtt = "{rtt}"
queue = "{queue}"
[[flows]]
"""


@pytest.mark.parametrize(
    ("rate", "rtt", "queue", "expected"),
    [
        ("20mbit", "20ms", "1bdp", _native.DEFAULT_RECEIVE_BUFFER),
        # 1.25 MB are in flight (12.5 MB/s x 0.1 s), and the queue holds 400 packets.
        ("100mbit", "100ms", "400p", 4 * (1_250_000 + 400 * 1500)),
        ("100mbit", "100ms", "600000B", 4 * (1_250_000 + 600_000)),
        ("100mbit", "100ms", "infinite", _native.DEFAULT_RECEIVE_BUFFER),
        ("100gbit", "1s", "1p", 1 << 30),
    ],
)
def test_a_receive_buffer_is_linuxs_default_or_four_times_the_bdp(rate, rtt, queue, expected):
    plan = resolve(loads(LINE.format(rate=rate, rtt=rtt, queue=queue)))
    assert plan["receive_buffer"] == expected and not plan["receive_memory"]


def test_a_scenarios_receive_buffer_is_memory_and_bounded():
    text = 'receive_buffer = "{}"\n' + LINE.format(rate="10mbit", rtt="20ms", queue="100p")
    plan = resolve(loads(text.format("1MB")))
    assert plan["receive_buffer"] == 1_000_000 and plan["receive_memory"]
    for wrong in ("100B", "2GB", "0B"):
        with pytest.raises(NarrowsError, match="receive_buffer"):
            resolve(loads(text.format(wrong)))


def test_auto_is_the_default_of_real_sockets_and_memory():
    text = LINE.format(rate="100mbit", rtt="100ms", queue="400p")
    bare, auto = resolve(loads(text)), resolve(loads('receive_buffer = "auto"\n' + text))
    assert auto["receive_buffer"] == bare["receive_buffer"] and auto["receive_memory"]


def test_simulations_for_real_sockets_have_their_memory_at_every_point():
    text = LINE.format(rate="100mbit", rtt="100ms", queue="400p")
    sweep = '[sweep]\nseeds = 2\n[sweep.vary]\n"topology.rate" = ["100mbit", "1gbit"]\n'
    runs = expand(loads(text + sweep).beside_real())
    plans = [resolve(run.scenario) for run in runs]
    assert len(plans) == 4 and all(plan["receive_memory"] for plan in plans)
    assert plans[0]["receive_buffer"] < plans[2]["receive_buffer"]
    named = loads('receive_buffer = "1MB"\n' + text)
    assert named.beside_real().raw()["receive_buffer"] == named.raw()["receive_buffer"] == "1MB"


def test_a_cell_names_the_buffer_that_its_real_sockets_have():
    for cell in grid.core():
        given = resolve(loads(grid.scenario(cell, "reno", "10s")))
        bare = resolve(loads(grid.scenario(cell, "reno", "10s"), overrides={"receive_buffer": None}))
        assert given["receive_buffer"] == bare["receive_buffer"] and given["receive_memory"]
        assert not bare["receive_memory"]
