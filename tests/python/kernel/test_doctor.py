"""`narrows doctor`, and the error of a run that lacks a requirement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from narrows.backends.kernel import features, namespaces, ovs
from narrows.backends.kernel.features import Finding
from narrows.backends.kernel.shell import KernelError
from narrows.backends.kernel.soundness import judge, line
from narrows.cli.doctor import examine, lacking, readiness


def test_the_simulator_is_ready_even_if_other_parts_are_not(monkeypatch, narrows):
    monkeypatch.setattr("shutil.which", lambda name: None)
    code, out, _ = narrows("doctor", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["ready"]["sim"] and not data["ready"]["kernel"]
    missing = {finding["name"]: finding for finding in data["findings"] if not finding["have"]}
    assert missing["ethtool"]["remedy"] == "install ethtool"


def test_every_finding_has_a_use_and_a_remedy():
    for finding in examine():
        assert finding.use
        assert finding.have or finding.remedy
        assert set(finding.needed) <= {"sim", "kernel", "vm", "deploy"}


def test_a_part_is_ready_if_it_lacks_nothing_it_needs():
    have = Finding("a", True, ("sim", "kernel"), "x", "")
    lack = Finding("b", False, ("kernel",), "x", "")
    findings = [have, lack]
    assert readiness(findings) == {"sim": True, "kernel": False, "vm": True, "deploy": True}


def test_open_vswitchs_module_is_asked_for_in_a_line(monkeypatch):
    monkeypatch.setattr(ovs, "MODULE", Path("/none"))
    with pytest.raises(KernelError, match=r"found no module openvswitch, .*; modprobe openvswitch, or leave"):
        features.require(features.datapath)


def test_a_run_stops_with_the_first_that_lacks():
    lacking = Finding("tc", False, ("kernel",), "rates and queues", "install iproute2")
    with pytest.raises(KernelError, match="found no tc, needed for rates and queues; install iproute2"):
        features.require(lambda: [Finding("netem", False, (), "x", "y"), lacking])


@pytest.fixture
def no_root(monkeypatch):
    """An ordinary user without capabilities."""

    def refused(command, lines):
        raise KernelError("ip netns add: Permission denied")

    monkeypatch.setattr(features, "call", refused)
    monkeypatch.setattr(features, "_capable", lambda: False)


def test_checks_that_need_root_are_not_tried_without_root(no_root, narrows):
    shown = narrows("doctor")[1]
    (row,) = [row for row in shown.splitlines() if row.startswith("qdisc htb ")]
    assert "not tried" in row and row.rstrip().endswith("run it as root (sudo)")
    assert "qdisc" not in next(row for row in shown.splitlines() if row.startswith("deploy "))
    assert not readiness(features.qdiscs())["kernel"]


def test_root_is_told_why_a_check_failed(no_root, monkeypatch):
    monkeypatch.setattr(features, "root", lambda: Finding("root", True, ("kernel",), "x", ""))
    tried = features.qdiscs()
    assert lacking(tried, "kernel") == ["qdisc htb", "qdisc pfifo", "qdisc bfifo"]
    with pytest.raises(KernelError, match=r"could not try qdisc htb, .*; ip netns add: Permission denied"):
        features.require(lambda: tried)


MOUNT = "30 23 0:30 / /sys/fs/bpf rw,relatime shared:9 - bpf bpf rw,mode=700"


@pytest.mark.parametrize(
    ("mounts", "have", "remedy"),
    [
        ([MOUNT], True, ""),
        (
            [MOUNT, MOUNT.replace("30 23", "31 30")],
            True,
            "",
        ),  # the second mount shows the same file system, so it hides nothing
        (
            [MOUNT, "31 30 0:31 / /sys/fs/bpf rw - bpf bpf rw"],
            False,
            "found 2 mounts at /sys/fs/bpf, one hides",
        ),
        ([MOUNT.replace("/sys/fs/bpf", "/elsewhere")], False, "mount -t bpf bpf /sys/fs/bpf"),
        ([MOUNT.replace("- bpf", "- tmpfs")], False, "mount -t bpf bpf /sys/fs/bpf"),
    ],
)
def test_bpffs_must_be_mounted_exactly_once(monkeypatch, mounts, have, remedy):
    monkeypatch.setattr(features, "_lines", lambda path: mounts if path == "/proc/self/mountinfo" else [])
    monkeypatch.setattr(features, "is_bpffs", lambda path: True)
    monkeypatch.setattr(features, "is_read_only", lambda path: False)
    (finding,) = [finding for finding in features.kernel() if finding.name == "bpffs"]
    assert finding.have is have
    assert have or finding.remedy.startswith(remedy)


MOUNT_BPFFS = "while umount -l /sys/fs/bpf; do :; done 2>/dev/null; mount -t bpf bpf /sys/fs/bpf"
SHOW = """
from narrows.backends.kernel.features import bpffs
found = bpffs()
print(found.have, found.remedy if not found.have else "")
"""


@pytest.mark.parametrize(
    ("mount", "shown"),
    [
        ("true", "True"),
        (
            "mount -t tmpfs tmpfs /sys/fs/bpf",
            "False found a mount of type tmpfs over the bpffs at /sys/fs/bpf, which hides its pins:"
            " umount /sys/fs/bpf",
        ),
        (
            "mount -o remount,ro /sys/fs/bpf",
            "False found a read-only bpffs at /sys/fs/bpf: mount -o remount,rw /sys/fs/bpf",
        ),
    ],
)
def test_the_visible_bpffs_must_be_writable(mount, shown, lacking):
    if os.geteuid() != 0:
        lacking("found no root")
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    script = f'{MOUNT_BPFFS} && {mount} && exec "$0" -c "$1"'
    done = subprocess.run(
        [*command, script, sys.executable, SHOW], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == shown, done.stderr


def test_doctor_names_left_namespaces_and_their_removal(monkeypatch, narrows, tmp_path):
    dead = 2**22 + 1  # larger than any process id
    monkeypatch.setattr(namespaces, "RUN", tmp_path)
    monkeypatch.setattr(features, "qdiscs", list)  # the replaced function would create a namespace
    for name in [f"nrw-{dead}-1-n{i}" for i in range(5)] + [f"nrw-{os.getpid()}-1-n0", "other"]:
        (tmp_path / name).touch()
    assert narrows("doctor")[1].splitlines()[-1] == (
        f"left by runs that were killed: 5 namespaces (nrw-{dead}-1-n0, nrw-{dead}-1-n1, nrw-{dead}-1-n2, "
        f"nrw-{dead}-1-n3, ...); the next run --on kernel removes them, or: ip netns delete NAME"
    )


def test_soundness_in_words():
    sound = judge({"reasons": []}, [], {"l0 of a": 0})
    late = judge({"reasons": ["the relay was late"]}, [], {"l0 of a": 3})
    assert line({"0": sound}) == "sound"
    assert line({"0": sound, "1": late}) == (
        "do not trust: the relay was late (run 1); 3 packets dropped by device l0 of a, no queue (run 1)"
    )


def test_a_path_with_ip_but_without_tc_is_a_finding(monkeypatch):
    monkeypatch.setattr(features, "call", lambda *_: "")
    monkeypatch.setattr(features.namespaces, "clean", lambda _: None)
    monkeypatch.setattr(features, "root", lambda: features.Finding("root", True, (), "", ""))
    monkeypatch.setenv("PATH", "/nowhere")
    found = features.qdiscs()
    assert not any(finding.have or finding.tried for finding in found)
    assert {finding.remedy for finding in found} == {"add the folder of tc to PATH, often /usr/sbin"}
