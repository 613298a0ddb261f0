"""A QUIC client and server, built from this workspace, as unmodified programs of a scenario.

The tests compare the counts of the programs with those of the results, so other work on the machine does not
disturb them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from narrows import sweep
from narrows.backends.vm import image, package
from narrows.backends.vm.backend import Vm
from narrows.scenario.load import load

ROOT = Path(__file__).parents[3]
SCENARIO = ROOT / "crates/narrows-quinn/examples/transfer.toml"
LEAST_PAYLOAD = 1000
"""Fewest bytes of data in a full datagram. quinn's have at least 1200 bytes (RFC 9000, section 14)."""


@pytest.fixture(scope="module")
def transfer():
    """The program, which is both client and server."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    command = ["cargo", "build", "--locked", "--offline", "-p", "narrows-quinn", "--example", "transfer"]
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


@pytest.mark.usefixtures("real", "tidy")
def test_a_quic_client_and_server_run_on_the_kernel(transfer, backend, tmp_path):
    scenario = load(SCENARIO, {"flows.quic.program.files": [str(transfer)]})
    made = sweep.run(scenario, backend=backend, out=tmp_path / "out")
    check(made, tmp_path / "out/logs/0")


@pytest.mark.usefixtures("real", "tidy")
def test_an_unknown_controller_of_the_client_is_named(transfer, backend):
    client = "./transfer client {server} {port} 1 bbr9"
    overrides = {
        "flows.quic.program.files": [str(transfer)],
        "flows.quic.program.client": client,
        "duration": "3s",
        "flows.quic.stop": "2s",
    }
    made = sweep.run(load(SCENARIO, overrides), backend=backend)
    said = 'the client of quic ended with exit code 2: transfer: found "bbr9", expected'
    reasons = made.soundness["0"]["reasons"]
    assert any(said in why for why in reasons), reasons


def test_a_quic_client_and_server_run_in_a_guest(transfer, tmp_path):
    if package.found() is None or package.missing():
        lacking = "a prepared guest: narrows vm prepare"
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail(f"NARROWS_REQUIRE_KERNEL=1, but found no {lacking}")
        pytest.skip(f"found no {lacking}")
    image.ensure(lambda _: None)
    scenario = load(SCENARIO, {"flows.quic.program.files": [str(transfer)]})
    made = sweep.run(scenario, backend=Vm(), out=tmp_path / "out")
    check(made, tmp_path / "out/logs/0")
