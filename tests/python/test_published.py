"""`narrows study --as-published`, without a kernel: the network, the transfers, and their files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from narrows.backends.kernel.pings import Pings, parsed
from narrows.backends.kernel.shell import KernelError
from narrows.backends.kernel.star import commands as network
from narrows.backends.kernel.transfer import Transfer, checked
from narrows.errors import NarrowsError, OutputError
from narrows.report import build, write
from narrows.report.kinds import draw
from narrows.results.runs import PAPER
from narrows.studies import Verdict, find_study, judge, load_study, measure_run
from narrows.studies.published import Todo, commands, published, read, run_published, todo
from narrows.studies.runner import Outcome, chosen

STUDY = load_study(find_study("survey"))
P1 = STUDY.experiment("P1")
ASKED = Transfer("cubic", 10, "10gbit", 5_000_000, 15_000_000)


def test_the_network_is_the_papers() -> None:
    made = network(ASKED.star, "x-")
    assert made.namespaces == ["x-h1", "x-h2", "x-s1"]
    assert len(made.links) == 2
    assert all(line.startswith("link add") and line.count("mtu 1500") == 2 for line in made.links)
    tbf = "root handle 1: tbf rate 10gbit burst 5000000 limit 15000000"
    devices = {"x-h1": ["h1-eth0"], "x-h2": ["h2-eth0"], "x-s1": ["s1-eth1", "s1-eth2"]}
    assert made.queues == {
        name: [f"qdisc add dev {device} {tbf}" for device in of] for name, of in devices.items()
    }
    for host, address in (("h1", "10.0.0.1"), ("h2", "10.0.0.2")):
        route = f"route add 10.0.0.0/8 dev {host}-eth0 src {address} congctl cubic"
        assert route in made.addresses[f"x-{host}"]
    assert not any("congctl" in line for line in made.addresses["x-s1"]), "a switch has no TCP flow"
    server, client = ASKED.commands
    assert server[0] == "h2" and server[1][:2] == ["iperf3", "-s"]
    assert client == ("h1", ["iperf3", "-c", "10.0.0.2", "-J", "-t", "10"])


def test_with_more_hosts_each_pings_the_next() -> None:
    asked = Pings(3, 20, 50)
    assert [(host, words[-1]) for host, words in asked.commands] == [
        ("h1", "10.0.0.2"),
        ("h2", "10.0.0.3"),
        ("h3", "10.0.0.1"),
    ]
    assert asked.commands[0][1][:-1] == ["ping", "-n", "-c", "20", "-i", "0.05", "-W", "1"]
    made = network(asked.star, "x-")
    assert len(made.namespaces) == 4 and len(made.links) == 3 and not made.queues
    assert "congctl" not in str(made.addresses)
    assert asked.seconds == 1.0


PING = """PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.061 ms
64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=1.5 ms

--- 10.0.0.2 ping statistics ---
3 packets transmitted, 2 received, 33.3333% packet loss, time 100ms
rtt min/avg/max/mdev = 0.061/0.780/1.500/0.719 ms
"""


def test_pings_are_read_from_the_output_of_ping() -> None:
    assert parsed(PING) == {"sent": 3, "received": 2, "rtts_ms": [0.061, 1.5]}
    with pytest.raises(KernelError, match="ping: found no summary: ping: connect: Network is unreachable"):
        parsed("ping: connect: Network is unreachable\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Segmentation fault", "iperf3 wrote no JSON: Segmentation fault"),
        ('{"error": "unable to connect"}', "iperf3: unable to connect"),
        ('{"end": {"sender_tcp_congestion": "reno"}}', "reports the algorithm 'reno', expected 'cubic'"),
        ('{"end": {}}', "reports the algorithm None, expected 'cubic'"),
    ],
)
def test_a_failed_transfer_is_one_line(text: str, said: str) -> None:
    with pytest.raises(KernelError, match=said):
        checked(text, "cubic")


def test_each_repetition_has_all_algorithms_before_the_next_begins() -> None:
    full = todo(P1, Path("x"), ["bbr", "bic"], quick=False, seeds=None)
    assert [item.file.name for item in full] == [f"{a}-{n}.json" for n in (1, 2, 3) for a in ("bbr", "bic")]
    assert {item.asked.seconds for item in full} == {10}, (
        "transfers have iperf3's default duration, as in the paper"
    )
    quick = todo(P1, Path("x"), ["bbr", "bic"], quick=True, seeds=None)
    assert [(item.asked.repetition, item.asked.seconds) for item in quick] == [(1, 2), (1, 2)]
    assert len(todo(P1, Path("x"), ["bbr"], quick=True, seeds=4)) == 4


class Fake:
    """Writes reports like real stacks, without sending anything."""

    name = "kernel"
    most_jobs: int | None = 1

    def __init__(self, without: str = "", release: str = "6.0-fake", ends_at: int = 1000) -> None:
        self.without, self.release, self.ends_at = without, release, ends_at
        self.made: list[Transfer] = []
        self.attempts: list[Pings] = []
        self.is_cancelled = False

    def facts(self) -> dict[str, Any]:
        return {"kernel": self.release}

    def lacking(self, algorithms: Any) -> dict[str, str]:
        return {name: "Linux 6.0-fake has none" for name in algorithms if name == self.without}

    def cancel(self) -> None:
        self.is_cancelled = True

    def perform(self, asked: Transfer | Pings) -> dict[str, Any]:
        if isinstance(asked, Pings):
            self.attempts.append(asked)
            return {"report": {"pings": pings(asked)}, "ports": {}}
        if len(self.made) == self.ends_at:
            raise KeyboardInterrupt
        self.made.append(asked)
        return {"report": report(asked), "ports": {"h1-eth0": {"bytes": 1, "packets": 1, "drops": 0}}}


def report(asked: Transfer) -> dict[str, Any]:
    """A report like that of iperf3. The window of BIC is the largest."""
    window = (200 if asked.algorithm == "bic" else 100) * 1024 + asked.repetition
    stream = {
        "bytes": 125_000_000,
        "bits_per_second": 1e9 + asked.repetition,
        "retransmits": 1,
        "snd_cwnd": window,
        "rtt": 80 + asked.repetition,
        "rttvar": 20,
        "pmtu": 1500,
    }
    intervals = [
        {"streams": [{"socket": 5, "start": n, "end": n + 1, "omitted": False, **stream}]}
        for n in range(asked.seconds)
    ]
    return {"intervals": intervals, "end": {"sender_tcp_congestion": asked.algorithm}}


def pings(asked: Pings) -> dict[str, Any]:
    """Reports of pings. With seven hosts, one host gets only 16 replies to 20 pings."""
    return {
        f"h{host}": {
            "sent": asked.count,
            "received": 16 if host == 7 else 20,
            "rtts_ms": [0.1, 0.1 + asked.hosts / 100 + asked.repetition / 1000],
        }
        for host in range(1, asked.hosts + 1)
    }


def run(folder: Path, backend: Fake, **more: Any) -> tuple[Outcome, list[str]]:
    said: list[str] = []
    return run_published(STUDY, folder, backend, say=said.append, **more), said


def test_a_run_names_the_missing_algorithms_and_keeps_iperf3s_reports(tmp_path: Path) -> None:
    backend = Fake(without="veno")
    outcome, said = run(tmp_path, backend)
    assert len(backend.made) == 3 * 14 and len(backend.attempts) == 10 * 6
    assert outcome.notes == ["P1: without veno, because Linux 6.0-fake has none."] == said[:1]
    assert said[1:4] == [
        "P1: 42 transfers of 10 s on the kernel, 1 at a time, about 8 min",
        "P2: 60 attempts of 1 s on the kernel, 1 at a time, about 2 min",
        "as published: about 11 min in all",
    ]
    kept = json.loads((tmp_path / "kernel" / "P1" / "bic-2.json").read_text())
    assert kept["intervals"] == report(replace(ASKED, algorithm="bic", repetition=2))["intervals"]
    assert kept["narrows"]["transfer"]["algorithm"] == "bic" and kept["narrows"]["kernel"] == "6.0-fake"
    assert set(outcome.runs) == {"T1", "P1", "P2"} and len(outcome.runs["P1"]) == 42
    found = {finding.claim.id: finding for finding in outcome.findings}
    assert {name for name, of in found.items() if of.claim.experiment == "P1"} >= {"P1", "P3", "P8", "O8"}
    assert found["P1"].verdict is Verdict.NOT_REPRODUCED
    assert found["P2"].verdict is Verdict.REPRODUCED
    assert found["P10"].verdict is Verdict.REPRODUCED
    assert [dict(case.factors)["hosts"] for case in found["P10"].cases] == [
        "5 over 2",
        "6 over 2",
        "7 over 2",
    ]
    # The attempt with seven hosts failed, because a fifth of the pings had no reply.
    failed = {dict(case.factors)["hosts"]: case.most for case in found["O11"].cases}
    assert failed == {2.0: 0, 3.0: 0, 4.0: 0, 5.0: 0, 6.0: 0, 7.0: 100}
    assert not any("veno" in str(dict(case.factors)) for case in found["P3"].cases)


def test_measures_are_means_over_the_intervals_in_the_units_of_the_papers_script(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(), seeds=1)
    bic = outcome.runs["P1"].where({"algorithm": "bic"})[0]
    values = {
        name: measure_run(f"iperf3_{name}", bic).value
        for name in ("throughput", "window", "rtt", "rtt_variance", "mtu", "retransmits")
    }
    assert values == {
        "throughput": pytest.approx(1000, rel=1e-6),
        "window": pytest.approx(200, abs=0.01),
        "rtt": 81,
        "rtt_variance": 20,
        "mtu": 1500,
        "retransmits": 10,
    }
    assert float(bic.tables[PAPER]["cwnd"][0]) == 2311.71
    t, sent = bic.flow_series(0, "bytes")
    assert (t[-1], sent[-1]) == (10.0, 1.25e9)


def test_an_interrupted_run_resumes_with_the_missing_transfers(tmp_path: Path) -> None:
    first = Fake(ends_at=5)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, first, seeds=1)
    assert first.is_cancelled and len(list((tmp_path / "kernel" / "P1").glob("*.json"))) == 5
    second = Fake()
    _, said = run(tmp_path, second, seeds=1, reuse=True)
    assert [item.algorithm for item in second.made] == P1.iperf3.algorithms[5:]  # type: ignore[union-attr]
    assert said[:2] == [
        "P1: 5 of 15 transfers are kept from an earlier call",
        "P1: 10 transfers of 10 s on the kernel, 1 at a time, about 2 min",
    ]
    third = Fake()
    run(tmp_path, third, seeds=1, reuse=True)
    assert third.made == []
    # Transfers are repeated if the kernel or the duration is another one, and always without --reuse.
    for other, more in ((Fake(release="6.1"), {"reuse": True}), (Fake(), {"quick": True, "reuse": True})):
        run(tmp_path, other, seeds=1, **more)
        assert len(other.made) == 15
    again = Fake()
    run(tmp_path, again, seeds=1)
    assert len(again.made) == 15


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "cubic-1.json"
    item = Todo(ASKED, file)
    outcome, _ = run(tmp_path, Fake(), seeds=1, quick=True)
    good = json.loads((tmp_path / "kernel" / "P1" / "cubic-1.json").read_text())
    del good["intervals"][0]["streams"][0]["rttvar"]
    for text, said in (
        ("{", "expected a file that this command wrote"),
        (json.dumps(good), "an interval without rttvar"),
    ):
        file.write_text(text)
        with pytest.raises(OutputError, match=said):
            read(item, outcome.runs["T1"])


def test_the_page_has_the_papers_diagrams_charts_and_table(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(without="veno"), seeds=2)
    page = build(outcome)
    figures = [spec.id for spec in STUDY.figures if spec.experiment in ("P1", "P2")]
    assert len(figures) == 10 and all(f'id="fig-{name}"' in page for name in figures)
    assert "Table 1 next to our measurements with iperf3" in page and "without veno, because" in page
    assert "congctl bbr" in page, "the page has the commands, so that readers can repeat them"
    write(outcome, tmp_path, files=False)
    with (tmp_path / "measures.csv").open() as file:
        sides = {row["on"] for row in csv.DictReader(file)}
    assert sides == {"kernel"}


def test_diagrams_have_the_papers_figures_beside_ours(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(), seeds=1)
    spec = next(spec for spec in STUDY.figures if spec.id == "iperf3-diagrams")
    figure = draw(spec, outcome.runs["P1"])
    assert len(figure.panels) == 4 and figure.caption.endswith("Diamonds are the paper's figures.")
    text = json.dumps(figure.panels[1].chart.to_dict())
    assert "1285.8" in text, "the table has the paper's RTT of BIC"
    rows = {row["label"]: row for row in figure.panels[1].chart.to_dict()["layer"][0]["data"]["values"]}
    assert rows["BBR"]["at"] == 82.7, "the label is to the right of the marker, which would cover it"
    assert rows["BIC"]["at"] < 100


def test_an_order_has_a_case_for_each_pair_of_groups(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(), seeds=2)
    claim = next(claim for claim in STUDY.claims if claim.id == "P3")
    short = claim.model_copy(update={"order": [["bic"], ["cubic", "reno"], ["vegas"]]})
    finding = judge(short, outcome.runs)
    verdicts = {dict(case.factors)["algorithm"]: case.verdict for case in finding.cases}
    assert list(verdicts) == [
        "bic over cubic",
        "bic over reno",
        "bic over vegas",
        "cubic over vegas",
        "reno over vegas",
    ]
    assert verdicts["bic over reno"] is Verdict.REPRODUCED
    assert verdicts["cubic over vegas"] is Verdict.NOT_REPRODUCED, "equal is not larger"
    other = judge(short.model_copy(update={"order": [["cubic"], ["bic"]]}), outcome.runs)
    assert other.verdict is Verdict.NOT_REPRODUCED


def test_the_papers_text_agrees_with_its_table_on_windows_but_not_on_variances(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(), seeds=1, quick=True)
    found = {finding.claim.id: finding for finding in outcome.findings}
    assert found["T5"].verdict is Verdict.REPRODUCED
    assert found["T4"].verdict is Verdict.NOT_REPRODUCED
    wrong = [dict(c.factors)["algorithm"] for c in found["T4"].cases if c.verdict is Verdict.NOT_REPRODUCED]
    assert wrong and all("dctcp over" in name for name in map(str, wrong))


def test_only_as_published_runs_iperf3(tmp_path: Path) -> None:
    assert "P1" not in {experiment.id for experiment in chosen(STUDY, [])}
    with pytest.raises(NarrowsError, match="--only P1: it needs real stacks; add --as-published"):
        chosen(STUDY, ["P1"])
    assert [experiment.id for experiment in published(STUDY)] == ["T1", "P1", "P2"]
    assert [experiment.id for experiment in published(STUDY, ["P2"])] == ["P2"]
    with pytest.raises(NarrowsError, match="--as-published --only: found 'S1'"):
        published(STUDY, ["S1"])
    with pytest.raises(NarrowsError, match="no experiment with iperf3 or pings in study brf"):
        published(load_study(find_study("brf")))
    spec = P1.iperf3.model_copy(update={"algorithms": ["veno"]})  # type: ignore[union-attr]
    both = [STUDY.experiment("T1"), P1.model_copy(update={"iperf3": spec})]
    study = STUDY.model_copy(update={"experiments": both})
    with pytest.raises(NarrowsError, match="none of the experiment's algorithms"):
        run_published(study, tmp_path, Fake(without="veno"))


@pytest.mark.parametrize("hosts", [1, 255])
def test_a_number_of_hosts_without_pings_or_addresses_is_one_line(tmp_path: Path, hosts: int) -> None:
    (tmp_path / "study.toml").write_text(
        'title = "t"\nsummary = "s"\n[[experiments]]\nid = "P"\ntitle = "t"\n'
        f"pings = {{ hosts = [2, {hosts}] }}\n"
    )
    with pytest.raises(NarrowsError) as error:
        load_study(tmp_path)
    limit = "at least 2" if hosts == 1 else "at most 254"
    place = f"{tmp_path}/study.toml: experiments.P.pings.hosts.1"
    assert str(error.value) == f"{place}: found {hosts}, expected {limit}"


def test_the_commands_for_a_reader_are_those_of_the_network() -> None:
    lines = commands(ASKED).splitlines()
    assert lines[:3] == ["ip netns add h1", "ip netns add h2", "ip netns add s1"]
    assert lines[3].startswith("ip link add h1-eth0 netns h1 mtu 1500 type veth")
    assert (
        "tc -n h1 qdisc add dev h1-eth0 root handle 1: tbf rate 10gbit burst 5000000 limit 15000000" in lines
    )
    assert lines[-1] == "ip netns exec h1 iperf3 -c 10.0.0.2 -J -t 10"


@pytest.mark.parametrize("more", [(), ("--as-published",)])
def test_recorded_traces_are_refused_on_real_stacks(narrows: Any, tmp_path: Path, more: Any) -> None:
    code, out, err = narrows("study", "survey", "--on", "kernel", "--data", tmp_path, *more)
    assert (code, out) == (2, "")
    assert (
        err == "--data: found --on kernel, expected --on sim, because only simulations use recorded traces\n"
    )


def test_the_simulator_is_refused(narrows: Any) -> None:
    code, out, err = narrows("study", "survey", "--as-published")
    assert (code, out) == (2, "") and "--as-published: found --on sim, expected --on kernel or vm" in err


def test_a_transfer_survives_the_way_into_a_guest() -> None:
    asked = replace(ASKED, repetition=3)
    assert Transfer(**json.loads(json.dumps(asked.as_data()))) == asked


def test_each_window_has_an_axis_of_its_own(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, Fake(), seeds=1)
    tops = {}
    for name in ("iperf3-cwnd", "iperf3-throughput"):
        spec = next(spec for spec in STUDY.figures if spec.id == name)
        charts = [panel.chart.to_dict() for panel in draw(spec, outcome.runs["P1"]).panels]
        tops[name] = {chart["layer"][0]["encoding"]["y"]["scale"]["domain"][1] for chart in charts}
    assert len(tops["iperf3-cwnd"]) == 2, "BIC's window is larger, so it has an axis of its own"
    assert len(tops["iperf3-throughput"]) == 1
