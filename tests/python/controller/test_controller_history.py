"""For each port, the controller keeps means and maxima of the last hour, in bounded memory."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from fake_agent import flow, flow_list
from hypothesis import given
from hypothesis import strategies as st
from narrows._native import parse_body
from narrows.controller.history import POINTS, PORTS_MAX, STEP_S, History
from narrows.controller.sample import PortSample, Sample

SECOND = 1_000_000_000
(FLOW,) = parse_body(json.dumps(flow_list(flow()))).flows


def port(name="a/eth1", queued=0, tx_bps=1e6, flows=1, agent="a"):
    return PortSample(
        id=name,
        agent=agent,
        interface="eth1",
        at=None,
        capacity_bps=100_000_000,
        tx_bps=tx_bps,
        rx_bps=None,
        queued_bytes=queued,
        flows=(FLOW,) * flows,
    )


def fill(history, second, *ports):
    history.add(second * SECOND, Sample(ports, {}))


def test_an_interval_has_the_mean_rate_and_the_longest_queue():
    history = History(0)
    for second, (queued, tx_bps, flows) in enumerate([(0, 1e6, 1), (125_000, 3e6, 2), (0, 2e6, 3)]):
        fill(history, second, port(queued=queued, tx_bps=tx_bps, flows=flows))
    fill(history, STEP_S, port())
    first, series = history.read("a/eth1", -1)
    assert first == 0
    assert series == {
        "tx_bps": [2e6],
        "rx_bps": [None],
        "flows_bps": [2e6],
        "queue_s": [pytest.approx(0.01)],
        "flows": [2],
    }


def test_a_port_without_an_agent_has_no_flows_and_no_queue():
    history = History(0)
    fill(history, 0, port(agent=None, queued=None))
    fill(history, STEP_S, port(agent=None, queued=None))
    _, series = history.read("a/eth1", -1)
    assert (series["tx_bps"], series["flows"], series["queue_s"]) == ([1e6], [None], [None])


def test_only_the_last_hour_is_kept_and_parts_join():
    history = History(0)
    for second in range(0, 2 * 3600, STEP_S):
        fill(history, second, port(tx_bps=second))
    first, series = history.read("a/eth1", -1)
    assert len(series["tx_bps"]) == POINTS == 3600 // STEP_S
    assert series["tx_bps"] == [STEP_S * number for number in range(first, first + POINTS)]
    middle, part = history.read("a/eth1", first + 99)
    assert middle == first + 100 and part["tx_bps"] == series["tx_bps"][100:]
    assert history.read("a/eth1", first + POINTS - 1)[1]["tx_bps"] == []


def test_a_pause_of_the_machine_is_a_gap():
    history = History(0)
    fill(history, 0, port())
    fill(history, 4 * STEP_S, port())
    fill(history, 5 * STEP_S, port())
    assert history.read("a/eth1", -1)[1]["tx_bps"] == [1e6, None, None, None, 1e6]
    fill(history, 20 * 3600, port())
    assert set(history.read("a/eth1", -1)[1]["tx_bps"]) == {None}


def test_an_unknown_port_has_no_series():
    assert History(0).read("a/eth1", -1) is None


def test_a_port_that_is_absent_for_an_hour_is_forgotten():
    history = History(0)
    fill(history, 0, port("a/eth1"), port("a/eth2"))
    for second in range(0, 3600 + 3 * STEP_S, STEP_S):
        fill(history, second, port("a/eth2"))
    assert history.read("a/eth1", -1) is None and len(history) == 1


def test_the_number_of_ports_is_bounded_and_absent_ports_give_way():
    history = History(0)
    fill(history, 0, *(port(f"a/{n}") for n in range(PORTS_MAX + 76)))
    assert (len(history), history.left_out) == (PORTS_MAX, 76)
    later = [port(f"a/{n}") for n in range(1, PORTS_MAX + 1)]
    for second in range(STEP_S, 5 * STEP_S, STEP_S):
        fill(history, second, *later)
    assert (len(history), history.left_out) == (PORTS_MAX, 0)
    assert history.read("a/0", -1) is None and history.read(f"a/{PORTS_MAX}", -1) is not None


def test_an_hour_of_all_ports_takes_less_than_20_mb():
    ports = [port(f"agent-{n}/eth1", flows=0) for n in range(PORTS_MAX)]
    history = History(0)
    tracemalloc.start()
    try:
        for second in range(0, 4000, 100):  # the first sample already allocates all memory
            fill(history, second, *ports)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 14e6 < now < 20e6 and peak < 21e6


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1e9)), min_size=1, max_size=60))
def test_every_interval_has_the_mean_of_its_values(steps):
    history, second, expected = History(0), 0, {}
    for pause, tx_bps in steps:
        second += pause
        expected.setdefault(second // STEP_S, []).append(tx_bps)
        fill(history, second, port(tx_bps=tx_bps))
    fill(history, second + STEP_S, port())
    first, series = history.read("a/eth1", -1)
    for number, value in enumerate(series["tx_bps"], first):
        values = expected.get(number)
        assert value == (
            None if values is None else pytest.approx(sum(values) / len(values), rel=1e-6, abs=0.51)
        )
