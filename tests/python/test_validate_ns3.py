"""`narrows validate` with ns-3: building, running and measuring it, and a machine without ns-3."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from narrows.errors import NarrowsError
from narrows.validate import ns3, page, runner
from narrows.validate.measures import Side
from narrows.validate.runner import Ask
from test_validate import CELL, finding, side


def test_ns3_is_measured_like_our_simulator(tmp_path):
    program = tmp_path / "cell"
    flow = {
        "name": "near",
        "goodput_bps": 1e7,
        "sent": 100,
        "resent": 2,
        "windows": [10.0, 20.0, 30.0],
        "srtts_s": [1.0, 0.02, 0.04],
        "bytes": [0.0, 3000.0, 1000.0],
    }
    program.write_text(f"#!/bin/sh\necho '{json.dumps([flow])}'\n")
    program.chmod(0o755)
    near = ns3.sides(program, CELL, "reno", "20s", 2.0, seeds=2, jobs=1)["near"]
    assert near.figures["rtt_mean_s"] == [pytest.approx(0.025)] * 2
    assert near.figures["rtt_p95_s"] == [0.04] * 2
    assert near.figures["resent"] == [0.02] * 2 and near.figures["cwnd_mean"] == [20.0] * 2
    assert near.windows[0][0] == pytest.approx([2.05, 2.10, 2.15])
    program.write_text("#!/bin/sh\nexit 1\n")
    assert ns3.sides(program, CELL, "reno", "20s", 2.0, seeds=2, jobs=1)["near"].runs == 2, (
        "the runs are kept"
    )
    with pytest.raises(NarrowsError, match="ns-3"):
        ns3.sides(program, CELL, "reno", "20s", 2.0, seeds=3, jobs=1)


def test_a_crash_of_ns3_loses_only_its_own_run(tmp_path):
    program = tmp_path / "cell"
    flow = {"name": "near", "goodput_bps": 1e7, "sent": 9, "resent": 0}
    flow |= {"windows": [1.0], "srtts_s": [0.02], "bytes": [1500.0]}
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in *seed=2*) kill -SEGV $$;; esac\necho '{json.dumps([flow])}'\n"
    )
    program.chmod(0o755)
    assert ns3.sides(program, CELL, "bbr", "20s", 2.0, seeds=3, jobs=1)["near"].runs == 2
    findings = [finding(0.0), finding(0.0, algorithm="bbr")]
    beside = [side(1e7, runs=3), side(1e7, runs=2)]
    outcome = runner.Outcome(Ask(Path("out"), ("reno", "bbr"), (CELL,), 1, 1, "20s"), "vm")
    outcome.findings = [replace(f, other=other) for f, other in zip(findings, beside, strict=True)]
    assert "1 of its 6 runs are missing: ns-3 crashed (BBR)." in page.render(
        outcome, [], "0.1.0", "ns-3 3.37"
    )


def test_damaged_ns3_output_is_made_again_and_invalid_output_gives_a_one_line_error(tmp_path):
    program = tmp_path / "cell"
    flow = {"name": "near", "goodput_bps": 1e7, "sent": 9, "resent": 0}
    flow |= {"windows": [1.0], "srtts_s": [0.02], "bytes": [1500.0]}
    program.write_text(f"#!/bin/sh\necho '{json.dumps([flow])}'\n")
    program.chmod(0o755)

    def once() -> dict[str, Side]:
        return ns3.sides(program, CELL, "reno", "20s", 2.0, seeds=1, jobs=1)

    first = once()["near"].figures
    (said,) = (tmp_path / "runs").iterdir()
    for damage in (b'[{"name": "ne', b"\xff", b"null", b"[]", b"[5]", b'[{"name": "near"}]'):
        said.write_bytes(damage)
        assert once()["near"].figures == first
    said.unlink()
    program.write_text("#!/bin/sh\necho terminate called\n")
    with pytest.raises(NarrowsError, match="ns-3: found no figures: 'terminate called'"):
        once()
    assert not said.exists()


def test_a_linker_that_is_killed_leaves_no_program(tmp_path, monkeypatch):
    def cut(command: list[str], **_: Any) -> None:
        Path(command[command.index("-o") + 1]).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(ns3.shutil, "which", lambda name: name)
    monkeypatch.setattr(ns3, "_HEADERS", Path(__file__))
    monkeypatch.setattr(ns3, "version", lambda: "ns-3 3.37")
    monkeypatch.setattr(ns3.subprocess, "run", cut)
    with pytest.raises(KeyboardInterrupt):
        ns3.build(tmp_path)
    assert not list(tmp_path.rglob("cell"))


def test_each_version_of_ns3_has_its_own_program_and_runs(tmp_path, monkeypatch):
    def linked(command: list[str], **_: Any) -> Any:
        Path(command[command.index("-o") + 1]).write_text("program")
        return ns3.subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(ns3.shutil, "which", lambda name: name)
    monkeypatch.setattr(ns3, "_HEADERS", Path(__file__))
    monkeypatch.setattr(ns3.subprocess, "run", linked)
    programs = []
    for version in ("ns-3 3.37", "ns-3 3.38"):
        monkeypatch.setattr(ns3, "version", lambda version=version: version)
        programs.append(ns3.build(tmp_path))
    assert len({program.parent for program in programs}) == 2 and all(p.is_file() for p in programs)
