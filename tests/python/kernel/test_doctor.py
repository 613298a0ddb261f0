"""`narrows doctor`, and what a run says that lacks something."""

from __future__ import annotations

import json

import pytest
from narrows.backends.kernel import features
from narrows.backends.kernel.features import Finding
from narrows.backends.kernel.shell import KernelError
from narrows.backends.kernel.soundness import judge, line
from narrows.cli import main as cli
from narrows.cli.doctor import examine, readiness


def test_the_simulator_is_ready_whatever_else_lacks(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["narrows", "doctor", "--json"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    data = json.loads(capsys.readouterr().out)
    assert exit_.value.code == 0
    assert data["ready"]["sim"] and not data["ready"]["kernel"]
    missing = {finding["name"]: finding for finding in data["findings"] if not finding["have"]}
    assert missing["ethtool"]["remedy"] == "install ethtool"


def test_every_finding_says_what_for_and_what_would_do():
    for finding in examine():
        assert finding.use
        assert finding.have or finding.remedy
        assert set(finding.needed) <= {"sim", "kernel", "deploy"}


def test_a_part_is_ready_if_it_lacks_nothing_it_needs():
    have = Finding("a", True, ("sim", "kernel"), "x", "")
    lack = Finding("b", False, ("kernel",), "x", "")
    findings = [have, lack]
    assert readiness(findings) == {"sim": True, "kernel": False, "deploy": True}


def test_a_run_stops_with_the_first_that_lacks():
    lacking = Finding("tc", False, ("kernel",), "rates and queues", "install iproute2")
    with pytest.raises(KernelError, match="found no tc, needed for rates and queues; install iproute2"):
        features.require(lambda: [Finding("netem", False, (), "x", "y"), lacking])


def test_soundness_in_words():
    sound = judge({"reasons": []}, [], {"l0 of a": 0})
    late = judge({"reasons": ["the relay was late"]}, [], {"l0 of a": 3})
    assert line({"0": sound}) == "sound"
    assert line({"0": sound, "1": late}) == (
        "do not trust: the relay was late (run 1); 3 packets dropped by device l0 of a, no queue (run 1)"
    )
