"""Parts of the vm backend that need no guest."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import _native
from narrows.backends.kernel import agents, ovs, soundness
from narrows.backends.kernel.backend import check_plan
from narrows.backends.kernel.commands import commands
from narrows.backends.kernel.layout import WIRE, lay_out
from narrows.backends.kernel.netem import Netem, netem
from narrows.backends.kernel.spec import spec
from narrows.backends.vm import backend, closure, image, package, wire
from narrows.backends.vm.archive import Archive
from narrows.backends.vm.errors import VmError
from narrows.backends.vm.machine import Machine, command
from narrows.backends.vm.turns import turn
from narrows.errors import ScenarioError
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve

DUMBBELL = """
[topology]
kind = "dumbbell"
rate = "50mbit"
rtt = "20ms"
loss = "0.5%"
[[flows]]
cc = "dctcp"
"""


def entries(data: bytes) -> list[tuple[str, int, int, bytes]]:
    """Name, mode, time and content of each entry of a cpio archive."""
    found, at = [], 0
    while True:
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        assert data[at : at + 6] == b"070701"
        start = at + 110
        name = data[start : start + fields[11] - 1].decode()
        start += fields[11] + -(110 + fields[11]) % 4
        content = data[start : start + fields[6]]
        at = start + fields[6] + -fields[6] % 4
        if name == "TRAILER!!!":
            assert at == len(data)
            return found
        found.append((name, fields[1], fields[5], content))


def test_an_archive_has_files_with_their_folders_links_and_times(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"abcde")
    (tmp_path / "link").symlink_to("real")
    out = io.BytesIO()
    archive = Archive(out)
    archive.copy(tmp_path / "link" / "file")
    archive.copy(tmp_path / "real" / "file")
    archive.file("etc/passwd", b"root")
    archive.link("bin/sh", "/bin/busybox")
    archive.device("dev/console", 5, 1)
    archive.close()
    found = entries(out.getvalue())

    names = [name for name, *_ in found]
    assert len(set(names)) == len(names)
    for name in names:
        assert "/" not in name or names.index(name.rpartition("/")[0]) < names.index(name)
    by_name = {name: rest for name, *rest in found}
    here = str(tmp_path).strip("/")
    mode, when, content = by_name[f"{here}/real/file"]
    assert stat.S_ISREG(mode) and content == b"abcde"
    assert when == int((tmp_path / "real" / "file").stat().st_mtime)
    assert by_name[f"{here}/link"][2] == b"real" and stat.S_ISLNK(by_name[f"{here}/link"][0])
    assert stat.S_ISCHR(by_name["dev/console"][0])


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(min_size=1, max_size=4), inner),
)


@given(values)
def test_packed_files_are_unpacked_unchanged(value):
    assert wire.unpack(json.loads(json.dumps(wire.pack(value)))) == value


@pytest.mark.parametrize("kind", ["<f8", "<u8", "<u4", "|b1"])
def test_arrays_come_back_to_the_last_bit(kind):
    array = np.array([0, 1, 3, 2**30], dtype=kind)
    found = wire.unpack(json.loads(json.dumps(wire.pack({"a": array}))))["a"]
    assert found.dtype == array.dtype and found.tobytes() == array.tobytes()
    nan = wire.unpack(json.loads(json.dumps(wire.pack(np.array([np.nan, np.inf])))))
    assert np.isnan(nan[0]) and nan[1] == np.inf


def placed(text: str):
    plan = resolve(loads(text), ["dctcp", "cubic"])
    return plan, lay_out(plan, delay="netem")


def test_netem_stands_in_the_wire_and_never_where_a_rate_is():
    _, layout = placed(DUMBBELL)
    todo = commands(layout, "x-")
    assert layout.relays and all(relay.netem for relay in layout.relays)
    for name, lines in todo.queues.items():
        limited = {line.split()[3] for line in lines if " htb " in line}
        delayed = {line.split()[3] for line in lines if " netem " in line}
        assert not limited & delayed
        assert bool(delayed) == (name == "x-" + WIRE)
    redirected = [line for line in todo.queues["x-" + WIRE] if "redirect" in line]
    assert len(redirected) == len(layout.relays)


def test_a_run_with_netem_has_no_relay_and_counts_its_losses():
    plan, layout = placed(DUMBBELL)
    told = spec(plan, layout, "x-", 0, 10_000_000)
    assert told["relays"] == []
    losses = [queue for queue in told["queues"] if queue.get("role") == "loss"]
    lossy = [i for i, link in enumerate(plan["links"]) if link["loss"]]
    assert lossy and [queue["link"] for queue in losses] == lossy


LINK = """
[[links]]
between = ["a", "b"]
rate = "12mbit"
delay = "1ms"
MORE
[[flows]]
from = "a"
to = "b"
"""


def link(more: str):
    return resolve(loads(LINK.replace("MORE", more)))


@pytest.mark.parametrize(
    "more",
    [
        'jitter = "1ms"',
        "duplicate = 0.01",
        'at = [{ time = "1s", delay = "5ms" }]',
        'at = [{ time = "1s", loss = 0.1 }]',
        'at = [{ time = "1s", rate = "0mbit" }]',
        'loss = { model = "gilbert-elliott", p = 0.1, r = 0.5 }',
    ],
)
def test_the_relay_handles_features_that_netem_models_differently(more):
    assert netem(link("")["links"][0]) == Netem(1_000_000, 0.0)
    assert netem(link(more)["links"][0]) is None


def test_netem_gets_delay_and_loss():
    assert Netem(20_000_500, 0.005).words().endswith("delay 20000.500us loss random 0.50000000%")
    assert "loss" not in Netem(1_000, 0.0).words()


def test_a_marking_fifo_gets_the_queueing_time_of_its_threshold():
    layout = lay_out(link('queue = { kind = "threshold", mark = 20, limit = "100p" }'))
    # At 12 Mbit/s, the link needs 20 ms for 20 packets of 1500 bytes.
    assert "ce_threshold 20000.000us" in layout.ports[0].queue.leaf.words()
    assert layout.disciplines == {"codel"}


def test_a_limit_in_bytes_of_a_marking_fifo_becomes_full_packets():
    layout = lay_out(link('queue = { kind = "threshold", mark = 20, limit = "100kB" }'))
    assert "codel limit 66 " in layout.ports[0].queue.leaf.words()


@pytest.mark.parametrize(
    ("queue", "line"),
    [
        ('queue = "threshold"\nat = [{ time = "1s", rate = "6mbit" }]', "a constant rate"),
        ('queue = "codel"', "found 'codel', expected a queue that the kernel backend supports"),
    ],
)
def test_a_queue_that_linux_lacks_is_an_error_in_one_line(queue, line):
    with pytest.raises(ScenarioError, match=line):
        lay_out(link(queue))


def test_in_virtual_time_a_second_without_idle_time_is_not_sound():
    assert "busiest" not in soundness.bounds()
    assert soundness.bounds(virtual=True)["busiest"] < 1


def test_the_guest_starts_without_unneeded_packages():
    """Every guest needs memory for each package that it imports."""
    told = subprocess.run(
        [sys.executable, str(closure.START), "list"], capture_output=True, text=True, check=True
    ).stdout
    tops = {name.partition(".")[0] for name in json.loads(told)}
    assert "narrows" in {name.partition(".")[0] for name in json.loads(told)}
    assert not tops & {"pyarrow", "altair", "rich", "typer", "os_ken", "pandas", "polars"}


def test_the_guest_has_the_native_module_and_no_scenarios():
    """The guest gets plans, so it needs no code for scenarios."""
    files = closure.python()
    assert {Path(_native.__file__), closure.OURS / "plan.py"} <= files
    assert not [file for file in files if file.is_relative_to(closure.OURS / "scenario")]


def test_the_guest_finds_the_agent_at_its_path(tmp_path, monkeypatch):
    agent = tmp_path / "narrows-agent"
    agent.write_text("#!/bin/sh")
    agent.chmod(0o755)
    monkeypatch.setenv(agents.VARIABLE, str(agent))
    assert agent in closure.programs()
    assert f"{agents.VARIABLE}={agent}" in image._environment()
    agent.unlink()
    assert agent not in closure.programs()
    assert agents.VARIABLE not in image._environment()


def test_a_folder_is_no_agent(tmp_path, monkeypatch):
    monkeypatch.setenv(agents.VARIABLE, str(tmp_path))
    assert agents.find() is None


@pytest.mark.parametrize("broken", [image._FACTS, "state", "initramfs", "facts"])
def test_a_damaged_guest_is_made_again(tmp_path, monkeypatch, broken):
    kernel = package.Kernel(tmp_path / "kernel", "6.1.0", "linux-image", "6.1", "0" * 64)
    monkeypatch.setenv("NARROWS_VM", str(tmp_path))
    monkeypatch.setattr(image, "prepared", lambda: kernel)
    monkeypatch.setattr(image, "fingerprint", lambda *_: "f" * 64)
    monkeypatch.setattr(image, "pack", lambda _, target, __: target.write_text("files"))
    booted = []

    def boot(made: image.Image) -> dict[str, list[str]]:
        made.state.write_text("state")
        booted.append(made)
        return {"congestion_controls": ["reno"]}

    monkeypatch.setattr(image, "_boot_and_save", boot)
    made = image.ensure(lambda _: None)
    assert image.ensure(lambda _: None) == made and len(booted) == 1
    if broken == "facts":
        (made.folder / image._FACTS).write_text("{}")
    else:
        (made.folder / broken).unlink()
    assert image.ensure(lambda _: None) == made and len(booted) == 2
    assert made.state.is_file() and not list(tmp_path.glob("new-*"))


def test_a_cache_below_the_present_folder_has_a_whole_path(tmp_path, monkeypatch):
    """QEMU and dpkg run in other folders, so they need an absolute path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NARROWS_VM", "guests")
    assert package.cache() == tmp_path / "guests"


def test_a_file_where_the_cache_should_be_gives_a_one_line_error_before_a_download(
    narrows, monkeypatch, tmp_path
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NARROWS_VM", str(tmp_path / "file"))
    monkeypatch.setattr(package, "missing", list)
    monkeypatch.setattr(package, "resolved", lambda _: "linux-image-6")
    monkeypatch.setattr(package, "_call", lambda *_: pytest.fail("downloads"))
    assert narrows("vm", "prepare") == (2, "", f"{tmp_path / 'file'}: File exists\n")


def test_without_a_kernel_the_error_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("NARROWS_VM", str(tmp_path / "none"))
    assert package.found() is None and image.existing() is None
    with pytest.raises(VmError, match="narrows vm prepare"):
        image.ensure(lambda _: None)


@pytest.fixture
def no_boot(tmp_path, monkeypatch):
    """A machine that can boot guests, but has no saved guest. The test fails if it boots one."""
    kernel = package.Kernel(tmp_path / "kernel", "6.1.0", "linux-image", "6.1.0-1", "0")
    monkeypatch.setattr(package, "found", lambda: kernel)
    monkeypatch.setattr(package, "missing", list)
    monkeypatch.setattr(image, "existing", lambda: None)
    monkeypatch.setattr(image, "ensure", lambda *_: pytest.fail("booted a guest"))


PORT = '[[rate_controllers]]\nkind = "KIND"\nlink = "bottleneck"\n'


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ("flows.0.cc=brf", "", "flows.0.cc: found 'brf', expected one that the guest's kernel"),
        ("flows.0.cc=bbr9", "", "flows.0.cc: found 'bbr9', expected one that the guest's kernel"),
        (
            "seed=1",
            PORT.replace("KIND", "brf"),
            "rate_controllers.0.kind: found 'brf', which needs Linux 6.10, but the guest has 6.1.0",
        ),
        (
            "seed=1",
            PORT.replace("KIND", "pacec"),
            "rate_controllers.0.kind: found 'pacec', which needs an SDN controller, expected --on sim",
        ),
        (
            "seed=1",
            "[sdn]\n" + PORT.replace("KIND", "brf"),
            "sdn: found an SDN controller, expected --on sim",
        ),
        ("topology.queue=fq-codel", "", "links."),
    ],
)
def test_unsupported_plans_are_refused_without_a_guest(no_boot, narrows, tmp_path, change, more, said):
    path = tmp_path / "a.toml"
    path.write_text(DUMBBELL + more)
    code, out, error = narrows("run", path, "--set", change, "--on", "vm", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert error.startswith(f"{path}: {said}") and error.count("\n") == 1
    assert narrows("check", path, "--set", change, "--on", "vm") == (code, out, error)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "lacking"), [("kernel.forwarding=ovs", "ovs-vswitchd"), ("kernel.tool=iperf3", "iperf3")]
)
def test_a_program_that_the_guest_would_lack_is_named_before(
    no_boot, narrows, monkeypatch, tmp_path, change, lacking
):
    monkeypatch.setattr("shutil.which", lambda name: None if name == lacking else f"/bin/{name}")
    (tmp_path / "a.toml").write_text(DUMBBELL)
    code, _, error = narrows("run", tmp_path / "a.toml", "--set", change, "--on", "vm")
    assert code == 2 and error.startswith(f"found no {lacking}, needed for {change.replace('=', ' = ')[:8]}")


def test_supported_plans_are_checked_without_a_guest(no_boot, narrows, tmp_path):
    (tmp_path / "a.toml").write_text(DUMBBELL)
    code, out, _ = narrows("check", tmp_path / "a.toml", "--on", "vm")
    assert code == 0 and "1 flow" in out


def test_the_algorithms_of_a_validation_are_checked_without_a_guest(no_boot, narrows, tmp_path):
    out = tmp_path / "out"
    code, _, error = narrows("validate", "--on", "vm", "--algorithms", "cubik", "--out", out)
    assert code == 2 and error.startswith("--algorithms: found 'cubik', expected an algorithm of Linux")
    assert "both sides have: bbr, bic, cubic" in error and error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.1.0-56-amd64", False),
        ("6.9.7", False),
        ("6.10.0", True),
        ("6.12.117+deb12-amd64", True),
        ("7.0", True),
    ],
)
def test_agents_need_a_recent_kernel(release, expected):
    assert package.runs_agents(release) is expected


def test_the_name_of_a_kernel_package_is_checked(narrows, monkeypatch, tmp_path):
    monkeypatch.setenv("NARROWS_VM", str(tmp_path))
    monkeypatch.setattr(package, "missing", list)
    code, _, error = narrows("vm", "prepare", "--kernel", "--help-me")
    assert code == 2
    assert (
        error.startswith("found the package '--help-me', expected the name of a kernel")
        and error.count("\n") == 1
    )


def test_unused_guests_of_earlier_files_are_removed(tmp_path):
    ages = {"a": 10, "b": 20, "c": 5000, "d": 6000, "e": 7000}
    for name, age in ages.items():
        (tmp_path / f"guest-{name}").mkdir()
        facts = tmp_path / f"guest-{name}" / "facts.json"
        facts.write_text("{}")
        os.utime(facts, (1e6 - age, 1e6 - age))
    image._tidy(tmp_path, 1e6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["guest-a", "guest-b", "guest-c"]
    image._tidy(tmp_path, 1e6 - 4000)
    assert len(list(tmp_path.iterdir())) == 3


HOLDER = """
import sys, threading, time
from pathlib import Path
from narrows.backends.vm.turns import turn
with turn(Path(sys.argv[1]), 1, threading.Event()):
    print("in", flush=True)
    time.sleep(100)
"""


def test_turns_are_given_to_so_many_at_a_time_in_the_order_of_asking(tmp_path):
    events, at_work, most = [], threading.Semaphore(0), []
    leave = [threading.Event() for _ in range(5)]

    def guest(number):
        with turn(tmp_path, 2, threading.Event()):
            events.append(number)
            at_work.release()
            assert leave[number].wait(60)

    threads = [threading.Thread(target=guest, args=(number,)) for number in range(5)]
    for waiting, thread in enumerate(threads):
        thread.start()
        # Start the next thread only after this thread has a slot or a ticket.
        until = time.monotonic() + 60
        while len(events) + len(list(tmp_path.glob("ticket-*"))) <= waiting or len(events) < min(
            waiting + 1, 2
        ):
            assert time.monotonic() < until
            time.sleep(0.01)
    for number in range(5):
        assert at_work.acquire(timeout=60)
        most.append(len(events) - number)
        leave[events[number]].set()
    for thread in threads:
        thread.join()
    assert events == [0, 1, 2, 3, 4] and max(most) <= 2
    assert not list(tmp_path.glob("ticket-*"))


def test_a_turn_ends_with_its_process_however_that_ends(tmp_path):
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(closure.OURS.parent)}
    first = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert first.stdout.readline() == "in\n"
    waiting = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("ticket-*")) and time.monotonic() < until:
        time.sleep(0.01)
    said, cancelled = [], threading.Event()
    cancelled.set()
    with pytest.raises(KeyboardInterrupt), turn(tmp_path, 1, cancelled, said.append):
        pytest.fail("the slot is taken")
    assert "waiting" in said[0]
    for process in (waiting, first):
        process.kill()
        process.communicate()
    with turn(tmp_path, 1, cancelled, said.append):  # the slot of a killed process is free
        assert len(said) == 1
    assert not list(tmp_path.glob("ticket-*"))


def test_a_run_waits_for_its_turn_before_it_wakes_a_guest(no_boot, tmp_path, monkeypatch):
    monkeypatch.setenv("NARROWS_VM", str(tmp_path))
    monkeypatch.setattr(image, "ensure", lambda *_: image.Image(package.found(), tmp_path, {}))
    monkeypatch.setattr(backend, "Machine", lambda *_: pytest.fail("woke a guest"))
    said, free = [], threading.Event()
    vm = backend.Vm(said.append)
    vm.cancel()  # without this, the run would wait forever
    with (
        turn(tmp_path / "turns", 2, free),
        turn(tmp_path / "turns", 2, free),
        pytest.raises(KeyboardInterrupt),
    ):
        vm.run(placed(DUMBBELL)[0])
    assert "waiting for one to end" in said[0]


def test_time_is_counted_in_instructions_and_the_guest_ends_with_us(tmp_path):
    words = command(tmp_path / "k", tmp_path / "i", tmp_path, tmp_path / "plan")
    assert "shift=0,sleep=off" in words and words[:3] == ["setpriv", "--pdeathsig", "KILL"]


def test_a_machine_that_ends_says_its_last_words(tmp_path):
    with pytest.raises(VmError, match="no such thing"):
        Machine(["sh", "-c", "echo no such thing >&2"], tmp_path, alone=False)


def test_a_machine_is_gone_when_its_context_ends(tmp_path):
    greet = "echo '{\"return\": {}}'; exec sleep 1000"
    with Machine(["sh", "-c", greet], tmp_path, alone=False) as machine:
        assert not machine.ended
    until = time.monotonic() + 10
    while not machine.ended and time.monotonic() < until:
        time.sleep(0.01)
    assert machine.ended


def test_open_vswitchs_module_is_loaded_only_on_request():
    text = '[topology]\nkind = "dumbbell"\nrate = "1mbit"\nrtt = "1ms"\n[[flows]]\n'
    asked = {
        "": False,
        '[kernel]\nforwarding = "bridge"\n': False,
        '[kernel]\nforwarding = "ovs"\n': True,
        '[kernel]\nforwarding = "ovs"\ndatapath = "netdev"\n': False,
    }
    for words, expected in asked.items():
        layout = check_plan(backend.in_guest(resolve(loads(text + words))))
        assert ovs.by_module(layout) is expected, words
    assert "openvswitch" not in image.loaded()
