"""A QUIC client and server, built from this workspace, as unmodified programs of a scenario."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from narrows import sweep

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "crates/narrows-quinn/examples/transfer.toml"
LEAST_PAYLOAD = 1000
"""Fewest bytes of data in a full datagram.

quinn's datagrams have at least 1200 bytes (RFC 9000, section 14).
"""


def program() -> Path:
    """The program, which is both client and server. `make test` has already built it."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    command = ["cargo", "build", "--workspace", "--locked", "--offline", "--example", "transfer"]
    done = subprocess.run(
        [*command, "--message-format", "json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    messages = map(json.loads, done.stdout.splitlines())
    names = [message["executable"] for message in messages if message.get("executable")]
    return Path(names[-1])


def check(made: sweep.Results, logs: Path) -> None:
    """Check the results of the QUIC flow against the reports of its programs."""
    flow = next(flow for flow in made.flows.to_pylist() if flow["name"] == "quic")
    sent = logs.joinpath("quic-client.log").read_text().split()
    received = logs.joinpath("quic-server.log").read_text().split()
    assert (sent[0], sent[2], received[0], received[2]) == ("sent", "bytes", "received", "bytes")
    data = int(sent[1])
    # The server got every byte, in spite of the losses at the bottleneck.
    assert data == int(received[1]) > 1_000_000
    # The results count the payload of the datagrams that arrived: the data, headers and retransmissions.
    assert data < flow["delivered_bytes"] < 1.2 * data
    assert data / 1472 < flow["sent_packets"] < data / LEAST_PAYLOAD
    assert flow["cc"] == "udp" and flow["goodput_bps"] < 20e6
