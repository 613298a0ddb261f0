"""The parts of the vm backend that need no guest."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.backends.kernel import soundness
from narrows.backends.kernel.commands import commands
from narrows.backends.kernel.layout import WIRE, lay_out
from narrows.backends.kernel.netem import Netem, netem
from narrows.backends.kernel.spec import spec
from narrows.backends.vm import closure, image, package, wire
from narrows.backends.vm.archive import Archive
from narrows.backends.vm.errors import VmError
from narrows.backends.vm.machine import Machine, command
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
    """Name, mode, time and content of what is in an archive."""
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
def test_what_is_packed_comes_back(value):
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
def test_what_netem_means_otherwise_is_the_relays(more):
    assert netem(link("")["links"][0]) == Netem(1_000_000, 0.0)
    assert netem(link(more)["links"][0]) is None


def test_netem_is_told_delay_and_loss():
    assert Netem(20_000_500, 0.005).words().endswith("delay 20000.500us loss random 0.50000000%")
    assert "loss" not in Netem(1_000, 0.0).words()


def test_a_fifo_that_marks_is_told_the_time_that_its_length_takes():
    layout = lay_out(link('queue = { kind = "threshold", mark = 20, limit = "100p" }'))
    # 20 packets of 1500 bytes at 12 Mbit/s.
    assert "ce_threshold 20000.000us" in layout.ports[0].queue.leaf.words()
    assert layout.disciplines == {"codel"}


def test_a_fifo_that_marks_behind_a_rate_that_changes_is_refused():
    with pytest.raises(ScenarioError, match="threshold"):
        lay_out(link('queue = "threshold"\nat = [{ time = "1s", rate = "6mbit" }]'))


def test_in_virtual_time_a_second_without_idle_time_is_not_sound():
    assert "busiest" not in soundness.bounds()
    assert soundness.bounds(virtual=True)["busiest"] < 1


def test_the_guest_starts_without_what_is_for_people():
    """Each package that the worker imports is in every guest, and in its memory."""
    told = subprocess.run(
        [sys.executable, str(closure.START), "list"], capture_output=True, text=True, check=True
    ).stdout
    tops = {name.partition(".")[0] for name in json.loads(told)}
    assert "narrows" in {name.partition(".")[0] for name in json.loads(told)}
    assert not tops & {"pyarrow", "altair", "rich", "typer", "os_ken", "pandas", "polars"}


def test_without_a_kernel_the_line_says_what_would_do(tmp_path, monkeypatch):
    monkeypatch.setenv("NARROWS_VM", str(tmp_path / "none"))
    assert package.found() is None and image.existing() is None
    with pytest.raises(VmError, match="narrows vm prepare"):
        image.ensure(lambda _: None)


def test_saved_guests_of_earlier_files_go_when_nobody_uses_them(tmp_path):
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
