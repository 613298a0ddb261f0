"""Runs on this machine's kernel.

Without root, the tests are skipped. With NARROWS_REQUIRE_KERNEL=1, they fail instead. Tests that measure in
real time are repeated if they fail (`flaky`), because other work on the machine can disturb them.
"""

from __future__ import annotations

import itertools
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from narrows import sweep
from narrows.backends.kernel import namespaces
from narrows.results.compare import compare
from narrows.scenario.load import loads

TWO_CUBICS = """
duration = "5s"
[topology]
kind = "dumbbell"
rate = "50mbit"
rtt = "20ms"
[[flows]]
[[flows]]
"""

pytestmark = pytest.mark.usefixtures("real", "tidy")


LONG_AND_FAT = """
duration = "7s"
[topology]
kind = "dumbbell"
rate = "100mbit"
rtt = "100ms"
queue = "1bdp"
[[flows]]
cc = "bbr"
stop = "6s"
"""


def narrows(*args, **options):
    command = [sys.executable, "-m", "narrows.cli.main", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.flaky(reruns=2)
def test_two_cubics_share_a_dumbbell(backend):
    scenario = loads(TWO_CUBICS)
    real = sweep.run(scenario, backend=backend)
    found = compare(sweep.run(scenario), real)
    for pair in found.pairs:
        print(f"{pair.name} {pair.figure}: sim {pair.a:.4g}, kernel {pair.b:.4g}, {pair.difference:+.1%}")
    print(real.soundness["0"]["reasons"] or "sound")
    goodput = sum(real.flows["goodput_bps"].to_pylist())
    # At most 1448 of the 1500 bytes of a packet are payload.
    assert 0.8 * 48.3e6 < goodput < 1.02 * 48.3e6
    assert all(rtt >= 0.0195 for rtt in real.flows["min_rtt_s"].to_pylist())


@pytest.mark.flaky(reruns=1)
def test_a_sender_is_never_dry_before_it_stops_and_has_little_left_then(backend):
    """If a sender has no data left, Linux marks it as application-limited.

    BBR then stays in Startup for long.
    """
    results = sweep.run(loads(LONG_AND_FAT), backend=backend)
    print(results.soundness["0"]["reasons"] or "sound")
    flow, link = results.flow_samples.to_pylist(), results.link_samples.to_pylist()
    srtt = [row["srtt_s"] for row in flow if 4.5 < row["t_s"] < 5.5]
    assert srtt and max(srtt) < 0.15, srtt
    left = [row["throughput_bps"] for row in link if row["link"] == 0 and row["t_s"] > 6.4]
    assert left and max(left) < 1e6, left


@pytest.mark.flaky(reruns=2)
def test_a_named_receive_buffer_holds_real_and_simulated_flows_and_is_no_disturbance(backend):
    text = 'receive_buffer = "300kB"\n' + TWO_CUBICS.replace('rtt = "20ms"', 'rtt = "100ms"')
    scenario = loads(text.replace('"50mbit"', '"100mbit"').replace("[[flows]]\n[[flows]]", "[[flows]]"))
    half_per_rtt = 150_000 * 8 / 0.1
    (real, simulated) = (sweep.run(scenario, backend=each) for each in (backend, None))
    verdict = real.soundness["0"]
    assert verdict["flows"][0]["rwnd_limited"] > 0.5
    assert not [reason for reason in verdict["reasons"] if "window" in reason]
    assert simulated.flows["goodput_bps"][0].as_py() == pytest.approx(half_per_rtt, rel=0.02)
    # Before version 6.6, Linux offers half of the buffer as receive window. Version 6.6 and later offer up to
    # 1448 of every 2304 bytes.
    assert 0.9 * half_per_rtt < real.flows["goodput_bps"][0].as_py() < 1.02 * 1448 / 1152 * half_per_rtt


@pytest.mark.flaky(reruns=2)
def test_a_receive_window_in_segments_holds_real_flows(backend):
    """Linux 6.6 and later drop the window limit at the first full segment, so the limit must be set again."""
    text = TWO_CUBICS.replace("[[flows]]\n[[flows]]", "[[flows]]\nreceive_window = 16")
    (real, simulated) = (sweep.run(loads(text), backend=each) for each in (backend, None))
    samples = real.flow_samples.to_pylist()
    assert max(row["in_flight"] for row in samples if row["t_s"] > 1.0) <= 16
    goodput = [results.flows["goodput_bps"][0].as_py() for results in (real, simulated)]
    assert goodput[0] == pytest.approx(goodput[1], rel=0.1)


@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("forwarding", ["bridge", "ovs"])
def test_forwarding_by(backend, forwarding):
    scenario = loads(
        TWO_CUBICS.replace("5s", "2s").replace("50mbit", "20mbit")
        + f'[kernel]\nforwarding = "{forwarding}"\n'
    )
    results = sweep.run(scenario, backend=backend)
    assert sum(results.flows["delivered_bytes"].to_pylist()) > 1e6
    bottleneck = next(link for link in results.links.to_pylist() if link["name"] == "bottleneck")
    assert bottleneck["throughput_bps"] < 1.05 * 20e6


BETA = Path("/sys/module/tcp_cubic/parameters/beta")

ONE_CUBIC_WITH_BETA = """
duration = "2s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
queue = "0.5bdp"
[[flows]]
cc = { name = "cubic", beta = 0.3 }
"""


def _kept(flow_samples):
    """For each congestion event, `ssthresh` after the event, divided by the window before the event."""
    rows = flow_samples.to_pylist()
    pairs = itertools.pairwise(row for row in rows if not math.isnan(row["ssthresh"]))
    return [
        after["ssthresh"] / before["cwnd"]
        for before, after in pairs
        if after["ssthresh"] < before["ssthresh"]
    ]


def test_a_parameter_of_the_scenario_is_set_in_the_kernels_module_and_restored(backend, monkeypatch):
    """CUBIC reads the parameter at each loss, so the module need not be loaded again."""
    emulate, before, during = backend._emulate, BETA.read_text(), []

    def watched(*arguments, **options):
        during.append(BETA.read_text())
        return emulate(*arguments, **options)

    monkeypatch.setattr(backend, "_emulate", watched)
    results = sweep.run(loads(ONE_CUBIC_WITH_BETA), backend=backend)
    assert during == [f"{round(0.3 * 1024)}\n"]
    assert BETA.read_text() == before
    assert results.flows["cc"].to_pylist() == ["cubic(beta=0.3)"]
    kept = _kept(results.flow_samples)
    assert kept and statistics.median(kept) == pytest.approx(0.3, abs=0.1), kept


def test_two_values_of_a_kernels_parameter_are_refused_before_anything_is_made(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(ONE_CUBIC_WITH_BETA + '[[flows]]\ncc = { name = "cubic", beta = 0.5 }\n')
    run = narrows("run", file, "--on", "kernel", "--out", tmp_path / "out")
    _, words = run.communicate(timeout=30)
    reason = "expected the same: the kernel has one value for all flows of cubic"
    assert words == f"{file}: flows.1.cc: found other parameters than in flows.0, {reason}\n"
    assert run.returncode == 2


def test_a_run_that_fails_leaves_nothing(backend, monkeypatch):
    from narrows.backends.kernel.shell import KernelError

    monkeypatch.setattr(backend, "_emulate", lambda told: (_ for _ in ()).throw(KernelError("refused")))
    with pytest.raises(KernelError, match="refused"):
        sweep.run(loads(TWO_CUBICS), backend=backend)


def _started(folder):
    file = folder / "long.toml"
    file.write_text(TWO_CUBICS.replace('"5s"', '"60s"'))
    run = narrows("run", file, "--on", "kernel", "--no-sim", "--out", folder / "out")
    for _ in range(200):
        if len(namespaces.ours(f"nrw-{run.pid}-1-")) == 7:
            time.sleep(1)  # let the run begin
            return run
        time.sleep(0.05)
    run.kill()
    pytest.fail(f"no namespaces: {run.communicate()}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_leaves_nothing(tmp_path, number):
    run = _started(tmp_path)
    run.send_signal(number)
    _, words = run.communicate(timeout=30)
    assert run.returncode == 130
    assert words == "removing the network ...\ninterrupted: 0 of 1 runs finished, nothing is written\n"


def test_pressing_ctrl_c_again_and_again_leaves_nothing(tmp_path):
    run = _started(tmp_path)
    for _ in range(100):
        run.send_signal(signal.SIGINT)
        time.sleep(0.02)
        if run.poll() is not None:
            break
    _, words = run.communicate(timeout=30)
    assert not namespaces.ours(f"nrw-{run.pid}-"), words


def test_a_killed_run_is_swept_by_the_next(tmp_path):
    run = _started(tmp_path)
    run.kill()
    run.communicate()
    left = namespaces.ours(f"nrw-{run.pid}-")
    assert left
    assert set(left) <= set(namespaces.sweep())
    assert not namespaces.ours(f"nrw-{run.pid}-")


def test_an_unprivileged_user_gets_a_one_line_error(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("is not root to begin with")
    file = tmp_path / "two.toml"
    file.write_text(TWO_CUBICS)
    # The command runs as root without capabilities, because another user may be unable to read this checkout.
    command = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
    code = "import sys; sys.argv = ['narrows', *sys.argv[1:]]; from narrows.cli.main import main; main()"
    done = subprocess.run(
        [*command, sys.executable, "-c", code, "run", file, "--on", "kernel", "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "found no root, needed for namespaces, packet sockets and eBPF; run it as root (sudo)\n"
    )
