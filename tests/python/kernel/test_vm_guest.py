"""Runs in guests with virtual time, so that other work on the machine does not disturb figures."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from narrows import sweep
from narrows.backends.kernel import agents, cc
from narrows.backends.kernel.pings import Pings
from narrows.backends.kernel.transfer import Transfer
from narrows.backends.vm import image, package
from narrows.backends.vm.backend import Vm
from narrows.backends.vm.errors import VmError
from narrows.scenario.load import load, loads

CUBIC = """
name = "cubic"
duration = "5s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "40ms"
[[flows]]
cc = "cubic"
"""

DCTCP = """
name = "dctcp"
duration = "3s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
queue = { kind = "threshold", limit = "200p", mark = 10 }
[[flows]]
cc = "dctcp"
"""

BBR = """
name = "bbr"
duration = "12s"
[topology]
kind = "dumbbell"
rate = "5mbit"
rtt = "30ms"
queue = { kind = "fifo", limit = "2bdp" }
[[flows]]
cc = "NAME"
"""
PAIR = ("bbr", "narrows_bbr")

VARIANTS = """
name = "variants"
duration = "3s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
[[flows]]
cc = "bbr-a"
[[flows]]
cc = "bbr-b"
[[flows]]
cc = "bbr-c"
"""

LINUX = {
    "bbr", "bic", "cubic", "dctcp", "highspeed",
    "htcp", "hybla", "illinois", "lp", "reno",
    "scalable", "vegas", "veno", "westwood", "yeah",
}  # fmt: skip


@pytest.fixture(scope="module")
def guests():
    """Skips or fails the test if no guest is prepared."""
    lacking = "a prepared guest: narrows vm prepare"
    if package.found() is None or package.missing():
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail(f"NARROWS_REQUIRE_KERNEL=1, but found no {lacking}")
        pytest.skip(f"found no {lacking}")
    return image.ensure(lambda _: None)


BURST = """
name = "burst"
duration = "2s"
seed = 1
[kernel]
host_queue = "QUEUE"
[[links]]
between = ["S", "R"]
rate = "100mbit"
delay = "0ms"
queue = "infinite"
[[links]]
name = "tight"
between = ["R", "D"]
rate = "2mbit"
delay = "50ms"
queue = "100p"
[[flows]]
from = "S"
to = "D"
cc = "brf"
[[rate_controllers]]
kind = "brf"
link = "tight"
params = { mode = "resolved" }
[probes]
interval = "10ms"
links = ["tight"]
"""


@pytest.fixture
def recent_guests(guests):
    """Guests with a kernel that runs BRF's agents. If the prepared kernel is older, uses another cache."""
    with pytest.MonkeyPatch.context() as patch:
        if not package.found().runs_agents:
            patch.setenv("NARROWS_VM", str(package.cache() / "recent"))
        try:
            if package.found() is None:
                package.fetch(lambda _: None, package.RECENT)
        except VmError as error:
            pytest.skip(f"found no kernel for BRF's agents: {error}")
        image.ensure(lambda _: None)
        yield


def figures(results):
    flow = {name: results.flows[name][0].as_py() for name in results.flows.column_names}
    return flow, results.soundness["0"]


def test_two_runs_of_a_cell_agree(guests):
    """All counts agree exactly. Times differ slightly if QEMU is disturbed (docs/how-to/vm.md)."""
    first, verdict = figures(sweep.run(loads(CUBIC), backend=Vm()))
    second, _ = figures(sweep.run(loads(CUBIC), backend=Vm()))
    for name in ("delivered_bytes", "sent_packets", "retransmits"):
        assert first[name] == second[name], name
    assert first["rtt_mean_s"] == pytest.approx(second["rtt_mean_s"], rel=1e-4)
    assert first["goodput_bps"] == pytest.approx(19.3e6, rel=0.01)
    assert 0.040 <= first["min_rtt_s"] < 0.0405
    assert verdict["sound"], verdict["reasons"]
    assert 0 < verdict["processors"]["busy_max"] < 0.6
    assert verdict["processors"]["softnet_drops"] == 0


def test_dctcp_hears_the_marks_of_a_queue(guests):
    flow, verdict = figures(sweep.run(loads(DCTCP), backend=Vm()))
    assert verdict["sound"], verdict["reasons"]
    # DCTCP keeps a queue of about ten packets (6 ms). Reno would fill the queue of 200 packets (120 ms).
    assert flow["retransmits"] == 0
    assert 0.020 < flow["rtt_mean_s"] < 0.040
    assert flow["goodput_bps"] > 17e6


def test_fq_paces_the_first_segments_of_brf(recent_guests):
    """Without departure times, the first segments leave in bursts of up to six."""
    if agents.find() is None:
        pytest.skip("found no narrows-agent")
    longest = {}
    for queue in ("fifo", "fq"):
        results = sweep.run(loads(BURST.replace("QUEUE", queue)), backend=Vm())
        assert results.soundness["0"]["sound"], results.soundness["0"]["reasons"]
        samples = results.link_samples
        times, waiting = samples["t_s"].to_pylist(), samples["queue_packets"].to_pylist()
        longest[queue] = max(n for t, n in zip(times, waiting, strict=True) if t < 0.5)
    assert longest["fifo"] >= 4, longest
    assert longest["fq"] <= 1, longest


@pytest.mark.parametrize(("datapath", "busy"), [("system", 0.3), ("netdev", 0.9)])
def test_open_vswitch_forwards_by_module_and_in_user_space(guests, tmp_path, datapath, busy):
    """In each direction, only the first packet at a bridge misses the flow entries."""
    words = f'[kernel]\nforwarding = "ovs"\ndatapath = "{datapath}"\n'
    scenario = loads(CUBIC.replace("5s", "3s") + words.replace('datapath = "system"\n', ""))
    flow, verdict = figures(sweep.run(scenario, backend=Vm(), out=tmp_path / "out"))
    assert verdict["sound"], verdict["reasons"]
    assert verdict["processors"]["busy_mean"] < busy
    assert flow["goodput_bps"] == pytest.approx(19.3e6, rel=0.01)
    for node in ("r1", "r2"):
        told = (tmp_path / "out" / "logs" / "0" / f"ovs-{node}.txt").read_text()
        assert told.startswith(f"{datapath}@ovs-{datapath}:"), told
        hit, missed = (int(n) for n in re.findall(r"(?:hit|missed):(\d+)", told)[:2])
        assert hit > flow["sent_packets"] and missed <= 4, told


def test_a_guest_makes_the_surveys_transfers_with_algorithms_that_this_kernel_may_lack(guests):
    backend = Vm()
    assert backend.lacking([*sorted(LINUX), "nosuch"]).keys() == {"nosuch"}
    made = backend.perform(Transfer("bic", 1, "10gbit", 5_000_000, 15_000_000))
    assert made["report"]["end"]["sender_tcp_congestion"] == "bic"
    assert made["ports"]["h1-eth0"]["bytes"] > made["report"]["end"]["sum_received"]["bytes"] > 1e7
    replies = backend.perform(Pings(3, 5, 10))["report"]["pings"]
    assert [of["received"] for of in replies.values()] == [5, 5, 5]


def test_iperf3_makes_the_flows_over_linux_bridges_in_a_guest(guests):
    scenario = loads(CUBIC.replace("5s", "3s") + '[kernel]\nforwarding = "bridge"\ntool = "iperf3"\n')
    flow, verdict = figures(sweep.run(scenario, backend=Vm()))
    assert verdict["sound"], verdict["reasons"]
    assert flow["goodput_bps"] == pytest.approx(19.3e6, rel=0.02)


PAGE = f"""
name = "page"
duration = "3s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
loss = "1%"
[[flows]]
name = "page"
cc = "bic"
[flows.program]
server = "{sys.executable} -m http.server {{port}}"
client = "{sys.executable} get.py http://{{server}}:{{port}}/page.bin"
client_at = "to"
files = ["page.bin", "get.py"]
"""


def test_a_transfer_of_unmodified_programs_repeats_with_the_same_packets_and_times(guests, tmp_path):
    """Client and server are Python programs in the guest. The seed determines which packets are lost."""
    (tmp_path / "page.bin").write_bytes(bytes(500_000))
    (tmp_path / "get.py").write_text(
        "import sys, urllib.request as u; print(len(u.urlopen(sys.argv[1]).read()))"
    )
    (tmp_path / "page.toml").write_text(PAGE)
    runs = []
    for attempt in ("first", "second"):
        made = sweep.run(load(tmp_path / "page.toml"), backend=Vm(), out=tmp_path / attempt)
        flow, verdict = figures(made)
        assert verdict["sound"], verdict["reasons"]
        assert (tmp_path / attempt / "logs/0/page-client.log").read_text() == "500000\n"
        runs.append(flow)
    first, second = runs
    assert first["retransmits"] > 0, "some packets are lost"
    for name in ("delivered_bytes", "sent_packets", "sent_bytes", "retransmits"):
        assert first[name] == second[name], name
    # A disturbed QEMU adds microseconds (docs/how-to/vm.md).
    for name in ("fct_s", "end_s", "rtt_mean_s"):
        assert first[name] == pytest.approx(second[name], rel=1e-4), name


def test_the_guest_has_every_congestion_control_of_linux(guests):
    offered = {name for name, _ in Vm().congestion_controllers()}
    assert offered == (LINUX | set(cc.NAMES) if agents.find() else LINUX)


@pytest.fixture
def agent(guests):
    """Skips or fails the test if guests have no narrows-agent."""
    if agents.find() is None:
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail("NARROWS_REQUIRE_KERNEL=1, but found no narrows-agent: make agent")
        pytest.skip("found no narrows-agent: make agent")


@pytest.mark.usefixtures("agent")
def test_bbr_in_ebpf_is_the_guests_kernels():
    """After 10 s, both algorithms enter ProbeRTT.

    The low rate in ProbeRTT must not lower the bandwidth estimate.
    """
    kernel, ebpf = (figures(sweep.run(loads(BBR.replace("NAME", name)), backend=Vm())) for name in PAIR)
    for flow, verdict in (kernel, ebpf):
        assert verdict["sound"], verdict["reasons"]
        assert verdict["notes"] == []
        assert flow["goodput_bps"] > 4.5e6
    assert ebpf[0]["goodput_bps"] == pytest.approx(kernel[0]["goodput_bps"], rel=0.03)
    assert ebpf[0]["rtt_mean_s"] == pytest.approx(kernel[0]["rtt_mean_s"], rel=0.10)


@pytest.mark.usefixtures("agent")
def test_the_gain_variants_run_concurrently_in_a_guest():
    results = sweep.run(loads(VARIANTS), backend=Vm())
    assert results.flows["cc"].to_pylist() == ["bbr-a", "bbr-b", "bbr-c"]
    for name, goodput in zip(("A", "B", "C"), results.flows["goodput_bps"].to_pylist(), strict=True):
        assert goodput > 5e5, name
    assert sum(results.flows["goodput_bps"].to_pylist()) > 8.5e6
    assert results.metadata["agent_congestion_controllers"]["bbr-c"] == "narrows_bbr_c"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_guest_outlives_its_run(guests, tmp_path, number):
    (tmp_path / "long.toml").write_text(CUBIC.replace("5s", "1000s"))
    words = [sys.executable, "-m", "narrows.cli.main", "run", "long.toml", "--on", "vm", "--no-sim"]
    package_folder = str(Path(sweep.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": package_folder}
    run = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        children = _waited_for(lambda: _machines(run.pid))
        assert children
        run.send_signal(number)
        _, said = run.communicate(timeout=120)
    finally:
        run.kill()
    if number == signal.SIGINT:
        assert run.returncode == 130 and "interrupted" in said
    assert _waited_for(lambda: not any(_alive(pid) for pid in children))


def _machines(parent: int) -> list[int]:
    """The process ids of this process's guests."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            its_parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if its_parent == parent and b"-incoming" in words and words[0].startswith(b"qemu"):
            found.append(int(entry.name))
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _waited_for(condition):
    until = time.monotonic() + 120
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return found
