"""Unmodified programs as flows on real stacks.

The tests compare exact counts of packets and bytes with the programs' reports, so other work on the machine
does not disturb the tests.
"""

from __future__ import annotations

import json
import sys

import pytest
from narrows import sweep
from narrows.backends.kernel.shell import KernelError
from narrows.scenario.load import load

PYTHON = sys.executable
HEAD = """
name = "programs"
duration = "4s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
"""
UPLOAD = """
[[flows]]
name = "upload"
cc = "reno"
stop = "2s"
program = { server = "iperf3 -s -1 -p {port}", client = "iperf3 -c {server} -p {port} -t {seconds} -J" }
"""
DOWNLOAD = f"""
[[flows]]
name = "download"
cc = "cubic"
start = "500ms"
[flows.program]
server = "{PYTHON} -m http.server {{port}}"
client = "{PYTHON} get.py http://{{server}}:{{port}}/page.bin"
client_at = "to"
files = ["page.bin", "get.py"]
"""
DATAGRAMS = f"""
[[flows]]
name = "datagrams"
[flows.program]
server = "{PYTHON} datagrams.py receive {{port}}"
client = "{PYTHON} datagrams.py send {{server}} {{port}}"
protocol = "udp"
files = ["datagrams.py"]
"""
PAGE_BYTES = 1_000_000
GET = """
import sys, urllib.request
for _ in range(2):  # two connections, one after the other
    print(len(urllib.request.urlopen(sys.argv[1]).read()))
"""
DATAGRAMS_PY = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1].startswith("receive"):
    s.bind(("", int(sys.argv[2])))
    total = 0
    try:
        while True:
            total += len(s.recv(65536))
            if sys.argv[1] == "receive-one":
                print("full")
                sys.exit(7)
    except KeyboardInterrupt:
        print("received", total, "bytes")
        sys.exit()
for _ in range(100):
    s.sendto(bytes(int((sys.argv + [1000])[4])), (sys.argv[2], int(sys.argv[3])))
    time.sleep(0.01)
print("sent 100")
"""

pytestmark = pytest.mark.usefixtures("real", "tidy")


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "page.bin").write_bytes(bytes(PAGE_BYTES))
    (tmp_path / "get.py").write_text(GET)
    (tmp_path / "datagrams.py").write_text(DATAGRAMS_PY)

    def made(*parts):
        file = tmp_path / "programs.toml"
        file.write_text(HEAD + "".join(parts))
        return load(file)

    return made


def test_bytes_and_packets_are_those_that_the_programs_report(scenario, backend, tmp_path):
    made = sweep.run(scenario(UPLOAD, DOWNLOAD, DATAGRAMS), backend=backend, out=tmp_path / "out")
    flows = {flow["name"]: flow for flow in made.flows.to_pylist()}
    logs = tmp_path / "out" / "logs" / "0"

    # Each page has a response header of about 200 bytes.
    page = flows["download"]
    assert logs.joinpath("download-client.log").read_text().split() == [str(PAGE_BYTES)] * 2
    assert 0 < page["delivered_bytes"] - 2 * PAGE_BYTES < 1_000
    assert page["sent_packets"] - page["retransmits"] >= 2 * PAGE_BYTES / 1448
    assert 0.5 < page["end_s"] < 4
    # At 20 Mbit/s, the link needs at least this time for both pages.
    assert 2 * PAGE_BYTES * 8 / 20e6 < page["fct_s"] < 3.5
    assert '"GET /page.bin HTTP/1.1" 200' in logs.joinpath("download-server.log").read_text()

    datagrams = flows["datagrams"]
    assert logs.joinpath("datagrams-client.log").read_text() == "sent 100\n"
    assert (datagrams["cc"], datagrams["sent_packets"]) == ("udp", 100)
    assert datagrams["delivered_bytes"] in range(95_000, 100_001, 1_000)

    upload, report = flows["upload"], json.loads(logs.joinpath("upload-client.log").read_text())["end"]
    assert report["sender_tcp_congestion"] == "reno", "the route of the sender sets its algorithm"
    # The delivered bytes contain a few hundred bytes of iperf3's control connection. When iperf3 is
    # interrupted, the data in the sender's buffer is lost.
    assert 0 < upload["delivered_bytes"] <= report["sum_sent"]["bytes"] + 2_000
    # iperf3 reads its count of retransmissions before its connections have ended.
    assert upload["retransmits"] == pytest.approx(report["sum_sent"]["retransmits"], abs=10)
    assert upload["sent_bytes"] > upload["delivered_bytes"]
    assert 0.020 < upload["min_rtt_s"] < 0.030


def test_a_server_that_does_not_listen_ends_the_run_with_its_last_line(scenario, backend):
    fails = DOWNLOAD.replace("-m http.server {port}", "-c 'raise SystemExit(\\\"no room\\\")'")
    with pytest.raises(KernelError) as caught:
        sweep.run(scenario(fails), backend=backend)
    assert str(caught.value).endswith("the server of download ended with exit code 1: no room")


def test_a_client_that_fails_makes_the_run_unsound(scenario, backend):
    fails = DOWNLOAD.replace('page.bin"\nclient_at', 'missing.bin"\nclient_at')
    made = sweep.run(scenario(fails), backend=backend)
    reasons = made.soundness["0"]["reasons"]
    assert any("the client of download ended with exit code 1: urllib.error" in why for why in reasons), (
        reasons
    )


LARGE = DATAGRAMS.replace("send {server} {port}", "send {server} {port} 4000")


def test_fragmented_datagrams_count_whole_and_have_a_note(scenario, backend):
    made = sweep.run(scenario(LARGE), backend=backend)
    (flow,) = made.flows.to_pylist()
    assert flow["sent_packets"] == 100 and flow["delivered_bytes"] == 400_000
    assert any("100 datagrams were fragmented" in note for note in made.soundness["0"]["notes"])


def test_the_last_words_of_a_server_are_kept(scenario, backend, tmp_path):
    sweep.run(scenario(DATAGRAMS), backend=backend, out=tmp_path / "out")
    log = tmp_path / "out" / "logs" / "0" / "datagrams-server.log"
    assert log.read_text() == "received 100000 bytes\n"


def test_a_server_that_fails_during_the_run_makes_it_unsound(scenario, backend):
    fails = DATAGRAMS.replace("datagrams.py receive", "datagrams.py receive-one")
    made = sweep.run(scenario(fails), backend=backend)
    reasons = made.soundness["0"]["reasons"]
    assert any("the server of datagrams ended with exit code 7: full" in why for why in reasons), reasons


def test_a_flow_in_the_wrong_direction_has_a_note(scenario, backend):
    turned = DOWNLOAD.replace('client_at = "to"\n', "")
    made = sweep.run(scenario(turned), backend=backend)
    (note,) = (note for note in made.soundness["0"]["notes"] if "download" in note)
    assert 'exchange from and to, and set client_at = "to"' in note
