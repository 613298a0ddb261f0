"""Packet captures on real stacks. `tests/python/test_capture.py` tests the captures of simulations."""

from __future__ import annotations

import math
import struct
import subprocess

import pytest
from narrows import sweep
from narrows.backends.kernel import captures
from narrows.errors import NarrowsError
from narrows.scenario.load import loads

pytestmark = pytest.mark.usefixtures("real", "tidy")

SCENARIO = """
duration = "3s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
queue = "20p"
[capture]
hosts = ["s1", "d1"]
links = ["bottleneck"]
snap = "96B"
[[flows]]
cc = "reno"
size = "3MB"
"""

NANOSECONDS = 0xA1B23C4D
"""First word of a pcap file whose times are in nanoseconds."""


def count(file, expression):
    command = ["tcpdump", "-n", "-r", str(file), expression]
    return len(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())


def test_hosts_and_links_are_captured(backend, tmp_path):
    results = sweep.run(loads(SCENARIO), backend=backend, out=tmp_path / "results")
    folder = tmp_path / "results/logs/0"
    files = {path.name: path for path in folder.iterdir() if path.suffix == ".pcap"}
    assert set(files) == {"s1.pcap", "d1.pcap", "bottleneck.pcap"}
    for file in files.values():
        head = struct.unpack("=IHHiIII", file.read_bytes()[:24])
        assert (head[0], head[5]) == (NANOSECONDS, 96)
    (flow,) = results.flows.to_pylist()
    (dropped,) = (row["dropped_packets"] for row in results.links.to_pylist() if row["name"] == "bottleneck")
    assert math.isfinite(flow["fct_s"])
    assert not any("lacks" in note for note in results.soundness["0"]["notes"])
    assert dropped > 0
    # Data packets are long, and ACKs are short.
    data = {name: count(file, "greater 200") for name, file in files.items()}
    assert data["s1.pcap"] == flow["sent_packets"]
    assert data["bottleneck.pcap"] == data["d1.pcap"] == flow["sent_packets"] - dropped
    acks = {name: count(file, "less 200 and tcp[tcpflags] & tcp-syn == 0") for name, file in files.items()}
    # No ACK is lost on its way to the sender. The sender itself sends only two: the third packet of the
    # handshake, and the last ACK.
    assert acks["s1.pcap"] == acks["d1.pcap"]
    assert acks["bottleneck.pcap"] <= 2
    assert count(files["s1.pcap"], "tcp[tcpflags] & tcp-syn != 0") == 2
    assert count(files["bottleneck.pcap"], "tcp[tcpflags] & tcp-syn != 0") == 1


def test_a_capture_that_cannot_be_written_ends_the_run(backend, tmp_path, monkeypatch):
    def command(place, folder):
        return [
            "sh",
            "-c",
            "echo listening on nothing; trap 'echo no space left; exit 1' INT; sleep 9 & wait",
        ]

    monkeypatch.setattr(captures.Place, "command", command)
    expected = r"/bottleneck\.pcap: cannot write a capture \(tcpdump ended with exit code 1: no space left\)$"
    with pytest.raises(sweep.OutputError, match=expected):
        sweep.run(loads(SCENARIO), backend=backend, out=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_run_fails_if_a_capture_stops_early(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(
        captures.Place,
        "command",
        lambda place, folder: ["sh", "-c", "echo listening on nothing; sleep 1; echo bye"],
    )
    with pytest.raises(NarrowsError, match=r"tcpdump.* ended with exit code 0: bye"):
        sweep.run(loads(SCENARIO), backend=backend, out=tmp_path / "results")
    assert not (tmp_path / "results").exists()
