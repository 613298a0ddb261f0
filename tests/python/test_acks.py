"""The table of flow states after each ACK agrees with the other tables and is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from narrows import sweep
from narrows.errors import NarrowsError
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve

TWO = """
duration = "4s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
queue = { kind = "fifo", limit = "1bdp" }
[[flows]]
name = "short"
cc = "cubic"
size = "1MB"
[[flows]]
name = "long"
cc = "bbr"
start = "500ms"
[probes]
interval = "50ms"
"""


def run(more=""):
    return sweep.run(loads(TWO + more))


def column(table, name, flow):
    return table[name].to_numpy()[table["flow"].to_numpy() == flow]


def test_each_segment_is_acknowledged_once():
    results = run("acks = ['short']\n")
    acks, flow = results.acks, results.flows.to_pylist()[0]
    assert set(acks["flow"].to_pylist()) == {0}
    assert column(acks, "ack", 0).tolist() == list(range(1, acks.num_rows + 1))
    assert column(acks, "acked", 0).sum() == -(-1_000_000 // 1448)
    assert column(acks, "lost", 0).sum() >= flow["retransmits"] > 0
    rtts = column(acks, "rtt_s", 0)
    assert np.nanmin(rtts) == pytest.approx(flow["min_rtt_s"], rel=1e-6)
    assert column(acks, "t_s", 0)[-1] == pytest.approx(flow["start_s"] + flow["fct_s"], rel=1e-6)
    assert np.isnan(column(acks, "phase", 0)).all()


def test_samples_show_the_state_after_the_newest_ack():
    results = run("acks = 'all'\n")
    for flow in (0, 1):
        times = column(results.acks, "t_s", flow)
        sampled = column(results.flow_samples, "t_s", flow)
        newest = np.searchsorted(times, sampled, side="right") - 1
        after = (newest >= 0) & (sampled - times[newest] < 0.010)
        assert after.sum() >= 10
        for name in ("cwnd", "state"):
            seen = column(results.flow_samples, name, flow)[after]
            assert (seen == column(results.acks, name, flow)[newest[after]]).mean() > 0.95, name
    phases = set(column(results.acks, "phase", 1).tolist())
    assert {0.0, 1.0, 2.0} <= phases, "Startup, Drain and ProbeBW"


def test_recording_changes_nothing_else():
    plain, recorded = run(), run("acks = 'all'\n")
    for name in ("flows", "links", "flow_samples", "link_samples", "distributions", "events"):
        # The rows are compared as text, because NaN does not equal NaN.
        assert repr(plain.table(name).to_pylist()) == repr(recorded.table(name).to_pylist()), name


def test_rows_are_bounded_and_cover_the_run():
    full, few = run("acks = 'all'\n").acks, run("acks = 'all'\nack_rows = 500\n").acks
    assert 250 <= few.num_rows <= 500 < full.num_rows
    for flow in (0, 1):
        kept = column(few, "ack", flow)
        assert kept[0] == 1 and len(set(np.diff(kept).tolist())) == 1, "evenly spaced"
        times = column(full, "t_s", flow)
        assert column(few, "t_s", flow).tolist() == times[kept.astype(int) - 1].tolist()
        assert column(full, "ack", flow)[-1] - kept[-1] < np.diff(kept)[0], "until the end"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "acks = ['lonk']\n",
            "probes.acks.0: found 'lonk', expected the name of a TCP flow; nearest is 'long'",
        ),
        ("acks = ['udp']\n[[flows]]\ntransport = 'udp'\nrate = '1mbit'\n", "probes.acks.0: found 'udp'"),
        ("acks = 3\n", "probes.acks: found 3, expected 'all' or a list of names"),
        ("acks = 'all'\nack_rows = 1\n", "probes.ack_rows: found 1"),
    ],
)
def test_wrong_names_give_one_line(more, message):
    with pytest.raises(NarrowsError) as caught:
        resolve(loads(TWO + more))
    assert message in str(caught.value)


def test_real_stacks_record_no_acks():
    with pytest.raises(NarrowsError, match=r"probes\.acks: found flows, expected --on sim"):
        resolve(loads(TWO + "acks = ['long']\n"), ["cubic", "bbr"], kernel="Linux")
