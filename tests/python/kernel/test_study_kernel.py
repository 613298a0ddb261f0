"""`narrows study` with one tiny experiment on this machine's kernel."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from narrows.backends.kernel import namespaces
from narrows.results.results import Results

pytestmark = pytest.mark.usefixtures("real", "tidy")

STUDY = """
title = "Tiny"
summary = "One flow."
[paper]
title = "None"
venue = "nowhere"
[[experiments]]
id = "T1"
title = "One flow"
scenario = "t1.toml"
factors = { algorithm = "case" }
[experiments.kernel]
duration = "3s"
keep = { controller = ["cubic"] }
quick = { seeds = 1, duration = "2s", keep = { controller = ["cubic"] } }
simulated_seeds = 2
omit = ["topology.jitter"]
[[figures]]
id = "rates"
experiment = "T1"
kind = "bars"
title = "Goodput"
caption = "Of one flow."
args = { y = "goodput" }
"""
CLAIMS = """
[[claims]]
id = "T"
source = "nowhere"
says = "The link carries no more than it can."
experiment = "T1"
measure = "goodput"
expect = { at_most = 9.7 }
"""
SCENARIO = """
duration = "60s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
queue = "50p"
jitter = "50us"
[[flows]]
[sweep]
seeds = 10
[[sweep.case]]
name = "cubic"
set = { "flows.0.cc" = "cubic" }
[[sweep.case]]
name = "reno"
set = { "flows.0.cc" = "reno" }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, text in (("study", STUDY), ("claims", CLAIMS), ("t1", SCENARIO)):
        (folder / f"{name}.toml").write_text(text)
    return folder


def study(folder, out, *more):
    command = [sys.executable, "-m", "narrows.cli.main", "study", str(folder), "--on", "kernel"]
    return subprocess.Popen(
        [*command, "--no-figures", "--out", str(out), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_study_runs_on_both_and_reports(tiny, tmp_path):
    out, err = study(tiny, tmp_path / "out", "--quick").communicate(timeout=120)
    assert "report in" in out, err
    assert "T1: 1 of 1 runs on the kernel" in err
    simulated, real = (Results.read(tmp_path / "out" / side / "T1") for side in ("sim", "kernel"))
    assert (len(simulated.runs), len(real.runs)) == (2, 1)
    assert real.metadata["backend"] == "kernel"
    assert 0 < real.flows["goodput_bps"][0].as_py() < 9.7e6
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Simulation against kernel" in page and 'id="fig-rates-kernel"' in page
    scenario = json.loads((tmp_path / "out" / "kernel" / "T1" / "metadata.json").read_text())["scenario"]
    assert "jitter" not in scenario["topology"] or not scenario["topology"]["jitter"]


def test_an_interrupted_study_leaves_nothing_in_the_kernel(tiny, tmp_path):
    running = study(tiny, tmp_path / "out")
    for _ in range(300):
        if any(name.startswith(f"nrw-{running.pid}-") for name in namespaces._entries(namespaces.RUN)):
            break
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted" in err
