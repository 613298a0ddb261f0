"""Packet captures of simulations, as tshark reads them."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import narrows
import pytest
from narrows.backends.kernel import captures as real
from narrows.backends.kernel.backend import check_plan
from narrows.backends.sim import Simulator
from narrows.cache import cached
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).parents[2]
DISSECTOR = ROOT / "packaging/wireshark/narrows.lua"

SCENARIO = """
duration = "30s"
seed = {seed}
[[links]]
name = "path"
between = ["a", "b"]
rate = "50mbit"
delay = "{delay}"
queue = "60p"
loss = "0.8%"
jitter = {{ max = "1ms" }}
[capture]
hosts = ["a", "b"]
links = ["path"]
[[flows]]
name = "many"
from = "a"
to = "b"
cc = "{cc}"
ecn = true
arrivals = {{ rate = 3, size = {{ distribution = "pareto", mean = "150kB" }} }}
"""


@pytest.fixture
def tshark() -> str:
    """The path of tshark. Without tshark, the test is skipped, or fails with NARROWS_REQUIRE_KERNEL=1."""
    found = shutil.which("tshark")
    if found is None:
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail("found no tshark, which tools/prerequisites.py installs")
        pytest.skip("needs tshark")
    return found


def read(
    tshark: str, file: Path, *fields: str, where: str = "", options: tuple[str, ...] = ()
) -> list[list[str]]:
    chosen = [argument for field in fields for argument in ("-e", field)]
    command = [
        tshark,
        "-n",
        *options,
        "-r",
        str(file),
        "-T",
        "fields",
        *chosen,
        *(["-Y", where] if where else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def captures(folder: Path, run: int = 0) -> dict[str, Path]:
    return {path.stem: path for path in (folder / "logs" / str(run)).iterdir()}


REPEATED = " || ".join(
    f"tcp.analysis.{name}"
    for name in (
        "retransmission",
        "fast_retransmission",
        "spurious_retransmission",
        "out_of_order",
        "keep_alive",
    )
)
"""A filter for packets whose data the host has sent before."""


@pytest.mark.parametrize(
    ("seed", "cc", "delay"),
    [(1, "cubic", "5ms"), (2, "bbr", "20ms"), (3, "bbr3", "40ms")],
)
def test_tshark_counts_what_the_simulator_counts(
    tshark: str, tmp_path: Path, seed: int, cc: str, delay: str
) -> None:
    text = SCENARIO.format(seed=seed, cc=cc, delay=delay)
    results = narrows.run(narrows.loads(text), out=tmp_path / "out")
    places = captures(tmp_path / "out")
    assert places.keys() == {"a", "b", "path"}
    flows = {32768 + flow["flow"]: flow for flow in results.flows.to_pylist()}
    assert len(flows) > 60
    sender = places["a"]
    repeated = read(tshark, sender, "tcp.srcport", where=f"ip.src == 10.0.0.1 && tcp.len > 0 && ({REPEATED})")
    counts = Counter(int(port) for (port,) in repeated)
    assert sum(counts.values()) > 20
    assert {port: counts[port] for port in flows} == {
        port: flow["retransmits"] for port, flow in flows.items()
    }
    # Minimum RTTs agree within a microsecond. Flows with retransmissions are left out, because RTTs of
    # retransmitted packets come from TCP timestamps, whose resolution is 1 ms.
    rtts: dict[int, float] = {}
    for port, rtt in read(
        tshark, sender, "tcp.dstport", "tcp.analysis.ack_rtt", where="tcp.analysis.ack_rtt"
    ):
        if int(port) in flows:
            rtts[int(port)] = min(float(rtt), rtts.get(int(port), 1e9))
    syns = Counter(int(p) for (p,) in read(tshark, sender, "tcp.srcport", where="tcp.flags == 0xc2"))
    clean = {
        port: flow
        for port, flow in flows.items()
        if flow["retransmits"] == 0 and syns[port] == 1 and not math.isnan(flow["end_s"])
    }
    assert len(clean) > 10
    for port, flow in clean.items():
        assert rtts[port] == pytest.approx(flow["min_rtt_s"], abs=1e-6), flow["name"]
    checks = ("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE")
    faulty = 'ip.checksum.status == "Bad" || tcp.checksum.status == "Bad" || _ws.malformed'
    for place in places.values():
        assert read(tshark, place, "frame.number", where=faulty, options=checks) == []
    duplicates = read(tshark, sender, "tcp.dstport", where="ip.src == 10.0.0.2 && tcp.analysis.duplicate_ack")
    found = {int(port) for (port,) in duplicates}
    assert found and found <= flows.keys()
    names = read(tshark, sender, "frame.comment", where="frame.comment")
    assert sorted(names) == sorted([f"flow {flow['name']} ({cc})"] for flow in flows.values())


def test_the_link_has_the_packets_that_arrive(tshark: str, tmp_path: Path) -> None:
    narrows.run(narrows.loads(SCENARIO.format(seed=5, cc="cubic", delay="10ms")), out=tmp_path / "out")
    places = captures(tmp_path / "out")
    received = read(tshark, places["b"], "frame.time_epoch", "tcp.seq", where="ip.dst == 10.0.0.2")
    assert read(tshark, places["path"], "frame.time_epoch", "tcp.seq") == received
    sent = read(tshark, places["a"], "frame.number", where="ip.src == 10.0.0.1")
    assert 0 < len(received) < len(sent), "the link loses packets"


SERVICES = """
duration = "3s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "30ms"
[capture]
hosts = ["s1"]
[[flows]]
cc = "{cc}"
[[rate_controllers]]
kind = "{cc}"
link = "bottleneck"
"""


@pytest.mark.parametrize(("cc", "kind"), [("xcp", "XCP"), ("rcp", "RCP"), ("bdr", "BDR")])
def test_the_dissector_reads_congestion_headers(tshark: str, tmp_path: Path, cc: str, kind: str) -> None:
    narrows.run(narrows.loads(SERVICES.format(cc=cc)), out=tmp_path / "out")
    lua = ("-X", f"lua_script:{DISSECTOR}")
    rows = read(tshark, captures(tmp_path / "out")["s1"], "narrows.header", "tcp.dstport", options=lua)
    found = Counter((header, port == "5001") for header, port in rows if header)
    assert found[kind, True] > 10 and found["echo", False] > 10
    assert all(port for _, port in rows), "all packets are TCP"


def test_the_dissector_reads_the_rate(tshark: str, tmp_path: Path) -> None:
    narrows.run(narrows.loads(SERVICES.format(cc="brf")), out=tmp_path / "out")
    lua = ("-X", f"lua_script:{DISSECTOR}")
    rates = read(tshark, captures(tmp_path / "out")["s1"], "narrows.rate", where="narrows.rate", options=lua)
    last = int(rates[-1][0]) * 8 / 1e6
    assert last == pytest.approx(20, rel=0.1), "the only active flow gets the whole link"


def test_a_capture_changes_no_result(tmp_path: Path) -> None:
    text = SCENARIO.format(seed=6, cc="cubic", delay="5ms")
    with_capture = narrows.run(narrows.loads(text), out=tmp_path / "out")
    without = narrows.run(
        narrows.loads(
            text.replace("[capture]", "[probes]")
            .replace('hosts = ["a", "b"]', "")
            .replace('links = ["path"]', "")
        )
    )
    columns = ["name", "goodput_bps", "retransmits", "min_rtt_s"]
    assert repr(with_capture.flows.select(columns).to_pylist()) == repr(
        without.flows.select(columns).to_pylist()
    )


def test_each_run_has_its_files_and_none_stays_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    text = SCENARIO.format(seed=7, cc="cubic", delay="5ms").replace("30s", "2s")
    narrows.run(narrows.loads(text), seeds=3, jobs=2, out=tmp_path / "out")
    sizes = [captures(tmp_path / "out", run)["a"].stat().st_size for run in range(3)]
    assert len(set(sizes)) > 1 and list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"capture": {}}, "capture: expected at least one of links, hosts and qlog"),
        ({"capture.hosts": ["c"]}, "capture.hosts.0: found 'c', expected a node"),
        ({"capture.links": ["a->c"]}, "capture.links.0: found 'a->c', expected a link"),
        ({"capture.snap": "10B"}, "capture.snap: found"),
    ],
)
def test_a_faulty_capture_gives_one_line(tmp_path: Path, change: dict[str, object], says: str) -> None:
    text = SCENARIO.format(seed=8, cc="cubic", delay="5ms")
    with pytest.raises(narrows.ScenarioError) as caught:
        narrows.run(narrows.loads(text, overrides=change), out=tmp_path / "out")
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_capture_needs_a_folder_and_the_local_executor(tmp_path: Path) -> None:
    scenario = narrows.loads(SCENARIO.format(seed=9, cc="cubic", delay="5ms"))
    with pytest.raises(
        narrows.ScenarioError,
        match="capture: found a capture without a results folder, expected --out FOLDER",
    ):
        narrows.run(scenario)
    with pytest.raises(narrows.ScenarioError, match="capture: found executor processes, expected local"):
        narrows.run(scenario, out=tmp_path / "out", executor="processes")


def test_a_cache_has_no_run_with_a_capture(tmp_path: Path) -> None:
    text = SCENARIO.format(seed=10, cc="cubic", delay="5ms").replace("30s", "2s")
    for _ in range(2):
        backend = cached(tmp_path / "cache")
        narrows.run(narrows.loads(text), backend=backend, out=tmp_path / "out")
        assert backend.found == 0
        assert captures(tmp_path / "out")["a"].stat().st_size > 1000


def test_a_capture_that_cannot_be_written_gives_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = narrows.loads(SCENARIO.format(seed=11, cc="cubic", delay="5ms"))
    plan = narrows.sweep.Resolver(Simulator())(scenario)
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: "/proc/self")
    with pytest.raises(narrows.OutputError, match="cannot write a capture"):
        Simulator().run(json.loads(json.dumps(plan)))


def test_kernel_captures_use_the_device_of_each_place():
    scenario = narrows.loads(
        """
        [topology]
        kind = "dumbbell"
        rate = "20mbit"
        rtt = "20ms"
        [capture]
        hosts = ["d1"]
        links = ["bottleneck"]
        [[flows]]
        """
    )
    plan = resolve(scenario)
    layout = check_plan(plan)
    link, host = real.places(plan, layout)
    nodes = {layout.namespace(number): name for number, name in enumerate(plan["nodes"])}
    ends = {link["name"]: plan["nodes"][link["to"]] for link in plan["links"]}
    assert (link.file, nodes[link.namespace], link.is_arriving_only) == (
        "bottleneck.pcap",
        ends["bottleneck"],
        True,
    )
    assert (host.file, nodes[host.namespace], host.is_arriving_only) == ("d1.pcap", "d1", False)
    back = next(
        port
        for port in layout.ports
        if plan["links"][port.link]["from"] == plan["nodes"].index(ends["bottleneck"])
        and plan["links"][port.link]["to"] == plan["nodes"].index("r1")
    )
    assert link.device == back.device
    (own,) = (port.device for port in layout.ports if plan["nodes"][port.node] == "d1")
    assert host.device == own
    router = real.places(
        {**plan, "capture": {**plan["capture"], "hosts": [plan["nodes"].index("r1")]}}, layout
    )[-1]
    assert router.device == "any"
    words = link.command(Path("/there"))
    assert words[words.index("-w") + 1] == "/there/bottleneck.pcap"
    assert words[words.index("-s") + 1] == "128"
    assert words[words.index("-Q") + 1] == "in"
    assert "--immediate-mode" in words, "otherwise tcpdump loses the packets before its end"
    assert "-Q" not in host.command(Path("/there"))
    assert real.places({**plan, "capture": None}, layout) == []
