"""Flows that iperf3 generates.

If the test that measures in real time fails, it is repeated (`flaky`), because other work on the machine can
disturb it.
"""

from __future__ import annotations

import json

import pytest
from narrows import sweep
from narrows.backends.kernel import iperf3
from narrows.backends.kernel.layout import lay_out
from narrows.errors import ScenarioError
from narrows.scenario.load import loads

TWO = """
duration = "3s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
[[flows]]
name = "bulk"
[[flows]]
name = "slow"
app = { rate = "2mbit" }
start = "500ms"
[kernel]
tool = "iperf3"
"""


def calls(plan):
    iperf3.check(plan)
    return iperf3.calls(plan, lay_out(plan))


def test_a_flow_is_called_with_its_ports_and_addresses(plan):
    made = plan(TWO)
    bulk, slow = calls(made)
    ends = lay_out(made).endpoints[1]
    words = " ".join(slow.client)
    assert f"-c {ends.to_address} -B {ends.source_address} -p 20001" in words
    assert "--cport 40001" in words
    assert "-C cubic" in words
    assert "-b 2000000" in words
    assert " ".join(bulk.client).endswith("-t 4"), (
        "longer than the run, at the end of which it is interrupted"
    )
    assert (slow.start, slow.stop) == (500_000_000, 3_000_000_000)
    assert slow.server == ["iperf3", "-s", "-B", ends.to_address, "-p", "20001", "-1", "-J"]


def test_brf_is_left_to_the_agent(plan):
    bulk, slow = calls(plan(TWO.replace('name = "bulk"', 'name = "bulk"\ncc = "brf"')))
    assert "-C" not in bulk.client
    assert "-C" in slow.client


@pytest.mark.parametrize(
    ("flow", "key"),
    [
        ('size = "300kB"', "flows.0.size"),
        ('app = { rate = "1mbit", on = "1s", off = "1s" }', "flows.0.app"),
        ('arrivals = { rate = 3, size = { distribution = "fixed", mean = "10kB" } }', "flows.0.arrivals"),
        ("count = 2", "flows.0.count"),
        ('transport = "udp"\nrate = "1mbit"', "flows.0.transport"),
    ],
)
def test_unsupported_features_of_iperf3_give_a_one_line_error(plan, flow, key):
    made = plan(TWO.replace('name = "bulk"', f'name = "bulk"\n{flow}'))
    with pytest.raises(ScenarioError, match=r"kernel.tool is iperf3") as refused:
        iperf3.check(made)
    assert key in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("real", "tidy")
def test_a_run_measures_both_and_keeps_their_json(tmp_path):
    from narrows.backends.kernel.backend import Kernel

    results = sweep.run(loads(TWO), backend=Kernel(), out=tmp_path / "out")
    bulk, slow = results.flows.to_pylist()
    assert bulk["delivered_bytes"] > 1e6
    assert 0.5 * 2e6 / 8 * 2.5 < slow["delivered_bytes"] < 1.2 * 2e6 / 8 * 2.5
    kept = tmp_path / "out" / "logs" / "0"
    own = json.loads((kept / "iperf3-bulk.json").read_text())
    # iperf3 counts the bytes that it wrote, and the kernel counts the bytes that arrived. The difference is
    # still in buffers.
    assert own["end"]["sum_sent"]["bytes"] == pytest.approx(bulk["delivered_bytes"], abs=5e6)
