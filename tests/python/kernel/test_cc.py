"""The algorithms that the agent loads: BBR v1, v2 and v3, BBR-A, -B and -C, and BBQ.

If a test that measures in real time fails, it is repeated (`flaky`), because other work on the machine can
disturb it.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from narrows import congestion, sweep
from narrows.backends.kernel import agents, cc, features, iperf3, namespaces
from narrows.backends.kernel.layout import lay_out
from narrows.backends.kernel.shell import KernelError
from narrows.backends.kernel.spec import spec
from narrows.scenario.load import loads

ONE = """
duration = "4s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
queue = { kind = "fifo", limit = "1bdp" }
[[flows]]
cc = "bbr-c"
"""

PATH = """
[[links]]
between = ["s-{name}", "d-{name}"]
rate = "20mbit"
delay = "10ms"
queue = "34p"
[[flows]]
name = "{name}"
from = "s-{name}"
to = "d-{name}"
cc = "{cc}"
"""

BESIDE = (
    'duration = "16s"' + PATH.format(name="kernel", cc="bbr") + PATH.format(name="ebpf", cc="narrows_bbr")
)
"""Flows of both algorithms run at the same time on separate paths (20 Mbit/s, 20 ms, a buffer of one BDP). So
other work on the machine disturbs both flows.
"""

GOODPUT = 0.03
RTT = 0.10
"""Largest accepted difference between the two algorithms' mean RTTs."""


def registered():
    return features.CONGESTION.read_text().split()


KILLED = "NARROWS_TEST_KILLED"
UNLOAD = 'read _; for i in $(seq 50); do "$0" cc unload all && exit; sleep 0.1; done'
"""Waits for the end of its input, and unloads the algorithms. Connections may use an algorithm for some time
after their namespaces are deleted, so the script tries several times.
"""


@contextmanager
def _lock() -> Iterator[int]:
    """Waits until no other test uses these algorithms, whose names are global in the kernel."""
    namespaces.FILES.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (namespaces.FILES / "test-cc").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


@pytest.fixture
def unloaded(agent):
    """Skips the test if an algorithm is loaded. Unloads all algorithms after the test.

    A second process unloads the algorithms, also if this process is killed. The second process shares the
    lock, so the next test waits until the algorithms are unloaded.
    """
    with _lock() as lock:
        before = cc.loaded()
        if before:
            pytest.skip(f"loaded already: {', '.join(before)}")
        program = str(agents.program("which loads congestion controllers"))
        guardian = subprocess.Popen(
            ["sh", "-c", UNLOAD, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[lock],
        )
        try:
            yield
        finally:
            guardian.stdin.close()
            guardian.wait()
        assert cc.loaded() == {}


def test_a_flow_gets_the_kernels_name(plan):
    made = plan(ONE.replace("bbr-c", "cubic"))
    made["flows"][0]["transport"]["cc"] = "bbr-c"
    layout = lay_out(made)
    told = spec(made, layout, "nrw-1-2-", 0, 10_000_000)
    assert told["flows"][0]["congestion"] == "narrows_bbr_c"
    assert "-C narrows_bbr_c" in " ".join(iperf3.calls(made, layout)[0].client)
    assert cc.needed(made) == ["narrows_bbr_c"]
    assert cc.needed(plan(ONE.replace("bbr-c", "bbr"))) == []
    assert congestion.registered("cubic") == "cubic"


def test_they_are_offered_once_if_the_agent_is_installed(monkeypatch, tmp_path):
    available = tmp_path / "available"
    available.write_text("reno cubic bbr narrows_bbr narrows_bbr3 narrows_bbr_c brf12_0\n")
    monkeypatch.setattr(features, "CONGESTION", available)
    monkeypatch.setattr(agents, "find", lambda: tmp_path)
    names = features.congestion_controls()
    ours = ["bbr-a", "bbr-b", "bbr-c", "bbq", "bbr2", "bbr3", "narrows_bbr"]
    assert names == ["reno", "cubic", "bbr", "brf", "pacec", *ours]
    monkeypatch.setattr(agents, "find", lambda: None)
    assert features.congestion_controls() == ["reno", "cubic", "bbr"]


def test_without_the_agent_the_command_gives_a_one_line_error(monkeypatch, narrows):
    monkeypatch.setattr(agents, "find", lambda: None)
    code, _, err = narrows("cc", "load", "bbr-c")
    assert code == 2
    assert err.startswith("found no narrows-agent") and err.count("\n") == 1


def test_a_partial_failure_prints_the_completed_steps(monkeypatch, tmp_path, narrows):
    agent = tmp_path / "narrows-agent"
    agent.write_text("#!/bin/sh\necho one is $2ed\necho narrows-agent: two is not >&2\nexit 2\n")
    agent.chmod(0o755)
    monkeypatch.setenv(agents.VARIABLE, str(agent))
    assert narrows("cc", "load", "bbr", "bbr-a") == (2, "one is loaded\n", "two is not\n")
    assert narrows("cc", "unload", "bbr", "bbr-a") == (2, "one is unloaded\n", "two is not\n")


@pytest.mark.skipif(KILLED not in os.environ, reason="runs in a process of the next test")
@pytest.mark.usefixtures("unloaded")
def test_that_is_killed():
    cc.call("load", "bbr-a")
    time.sleep(600)


def test_a_killed_test_leaves_nothing_registered(agent):
    with _lock():
        if cc.loaded():
            pytest.skip("loaded already")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "test_that_is_killed",
    ]
    killed = subprocess.Popen(command, env=os.environ | {KILLED: "1"}, stdout=subprocess.DEVNULL)
    try:
        while "narrows_bbr_a" not in registered():
            assert killed.poll() is None
            time.sleep(0.05)
    finally:
        killed.kill()
        killed.wait()
    with _lock():
        assert cc.loaded() == {}


@pytest.mark.usefixtures("unloaded")
def test_load_list_and_unload(narrows):
    code, out, _ = narrows("cc", "load", "bbr-b", "--exit-125")
    assert (code, out) == (0, "narrows_bbr_b is loaded\n")
    assert "narrows_bbr_b" in registered()
    code, out, _ = narrows("cc", "list", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert [name for name, row in rows.items() if row["loaded"]] == ["bbr-b"]
    assert rows["bbr-b"]["options"] == ["exit-125"]

    for wrong, said in [
        (("load", "bbr-b"), "narrows_bbr_b is loaded already"),
        (("load", "bbr-d"), 'found "bbr-d", expected one of bbr, bbr-a, bbr-b, bbr-c, bbq, bbr2, bbr3, all'),
        (("unload", "bbr-a"), "narrows_bbr_a is not loaded"),
        (("load",), "Missing argument"),
    ]:
        code, _, err = narrows("cc", *wrong)
        assert code == 2, wrong
        assert said in err and err.count("\n") == 1, err

    # If one name is wrong, the command loads or unloads nothing.
    for wrong in (("load", "bbr-c", "bbr-b"), ("unload", "bbr-b", "bbr-c")):
        assert narrows("cc", *wrong)[:2] == (2, "")
        assert list(cc.loaded()) == ["narrows_bbr_b"]
    code, out, _ = narrows("cc", "load", "all", "--down-needs-loss")
    assert (code, out.splitlines()) == (
        0,
        [
            "narrows_bbr_b is already loaded, with exit-125",
            "narrows_bbr is skipped: it has no gain model",
            "narrows_bbq is skipped: it has no gain model",
            "narrows_bbr2 is skipped: it has no gain model",
            "narrows_bbr3 is skipped: it has no gain model",
            "narrows_bbr_a is loaded",
            "narrows_bbr_c is loaded",
        ],
    )
    assert narrows("cc", "unload", "bbr-a", "bbr-c")[0] == 0

    with cc.at_hand(["narrows_bbr_b"]) as notes:
        assert notes == ["narrows_bbr_b was loaded before the run with exit-125"]
    assert "narrows_bbr_b" in registered(), "a run does not unload an algorithm that was loaded before it"
    code, out, _ = narrows("cc", "unload", "all")
    assert (code, out) == (0, "narrows_bbr_b is unloaded\n")
    assert "narrows_bbr_b" not in registered()
    assert narrows("cc", "unload", "all") == (0, "no algorithm is loaded\n", "")


@pytest.mark.usefixtures("unloaded")
def test_a_failed_load_gives_a_one_line_error_and_leaves_nothing(monkeypatch):
    with pytest.raises(KernelError, match=r"found .nonsense., expected one of"):  # noqa: SIM117
        with cc.at_hand(["narrows_bbr_a", "nonsense"]):
            pass
    assert cc.loaded() == {}


@pytest.mark.usefixtures("unloaded")
def test_the_last_of_two_runs_unloads():
    with ExitStack() as second:
        with cc.at_hand(["narrows_bbr_a"]) as first:
            assert first == []
            notes = second.enter_context(cc.at_hand(["narrows_bbr_a", "narrows_bbr_c"]))
            assert notes == [], "a run does not report an algorithm that another run loaded"
        assert set(cc.loaded()) == {"narrows_bbr_a", "narrows_bbr_c"}
    assert cc.loaded() == {}


@pytest.mark.usefixtures("unloaded")
def test_concurrent_runs_always_have_their_controllers():
    def use(_: int) -> bool:
        with cc.at_hand(["narrows_bbr_a"]):
            return "narrows_bbr_a" in cc.loaded()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(12)))
    assert cc.loaded() == {}


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("unloaded", "tidy")
@pytest.mark.parametrize("name", ["bbr-a", "bbr-b", "bbr-c", "bbq", "bbr2", "bbr3"])
def test_a_run_loads_its_controllers_and_unloads_them(name, tmp_path):
    from narrows.backends.kernel.backend import Kernel

    results = sweep.run(loads(ONE.replace("bbr-c", name)), backend=Kernel(), out=tmp_path / "out")
    (flow,) = results.flows.to_pylist()
    assert flow["cc"] == name
    assert flow["goodput_bps"] > 0.8 * 20e6 * 1448 / 1500
    assert cc.loaded() == {}
    facts = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert facts["agent_congestion_controllers"][name] == cc.NAMES[name]


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("unloaded", "tidy")
def test_bbr_in_ebpf_is_the_kernels():
    from narrows.backends.kernel.backend import Kernel

    results = sweep.run(loads(BESIDE), backend=Kernel())
    kernel, ebpf = results.flows.to_pylist()
    print(results.soundness["0"]["reasons"] or "sound")
    for figure, most in [("goodput_bps", GOODPUT), ("rtt_mean_s", RTT)]:
        print(f"{figure}: kernel {kernel[figure]:.5g}, eBPF {ebpf[figure]:.5g}")
        assert ebpf[figure] == pytest.approx(kernel[figure], rel=most), figure
