"""`narrows study survey --as-published` on this machine's kernel, shortened."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from narrows.backends.kernel import features
from narrows.studies import find_study

pytestmark = pytest.mark.usefixtures("real", "tidy")


@pytest.fixture
def survey(tmp_path: Path, lacking) -> Path:
    """The survey with two algorithms that every kernel has, and one algorithm that no kernel has."""
    for finding in features.programs(["iperf3", "ping"]):
        if not finding.have:
            lacking(finding.line)
    folder = tmp_path / "survey"
    shutil.copytree(find_study("survey"), folder)
    file = folder / "study.toml"
    algorithms = 'algorithms = ["reno", "cubic", "nosuch"]\nquick_seconds = 1'
    text, count = re.subn(r'algorithms = \["bbr", "bic".*', algorithms, file.read_text())
    assert count == 1
    file.write_text(text)
    return folder


def study(folder: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "narrows.cli.main", "study", str(folder), "--as-published"]
    command += ["--on", "kernel", "--quick", "--no-figures", "--out", str(out), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_the_command_measures_and_reports_and_resumes(survey, tmp_path):
    out = tmp_path / "out"
    done = study(survey, out)
    assert done.returncode == 0, done.stderr
    assert "P1: without nosuch, because Linux " in done.stderr
    assert "P1: 2 transfers of 1 s on the kernel, 1 at a time" in done.stderr
    for name in ("reno", "cubic"):
        report = json.loads((out / "kernel" / "P1" / f"{name}-1.json").read_text())
        assert report["end"]["sender_tcp_congestion"] == report["end"]["receiver_tcp_congestion"] == name
        assert report["end"]["sum_sent"]["bits_per_second"] < 10e9, "tbf limits the rate"
        assert report["end"]["sum_sent"]["bytes"] > 1e6
        sent = report["end"]["sum_received"]["bytes"]
        assert report["narrows"]["ports"]["h1-eth0"]["bytes"] > sent, "all data passes tbf"
    replies = [json.loads(file.read_text())["pings"] for file in (out / "kernel" / "P2").glob("*.json")]
    assert sorted(len(of) for of in replies) == sorted(3 * [2, 3, 4, 5, 6, 7])
    assert all(host["received"] == host["sent"] == 20 for of in replies for host in of.values())
    page = (out / "report.html").read_text()
    assert 'id="fig-iperf3-diagrams"' in page and 'id="fig-iperf3-cwnd"' in page
    (out / "kernel" / "P1" / "cubic-1.json").unlink()
    again = study(survey, out, "--reuse")
    assert again.returncode == 0, again.stderr
    assert "P1: 1 of 2 transfers are kept from an earlier call" in again.stderr
    assert "cubic-1, 1 of 1" in again.stderr
    assert "P2: 18 of 18 attempts are kept from an earlier call" in again.stderr
