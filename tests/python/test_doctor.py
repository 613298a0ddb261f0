"""The text of `narrows doctor`."""

from __future__ import annotations

import io
import json

import pytest
from narrows import extras
from narrows.backends.kernel import agents, features, namespaces, running
from narrows.backends.kernel.features import Finding
from narrows.cli import doctor
from narrows.cli.console import WIDEST, plain


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine that has neither extras nor the agent, and on which `doctor` tests no qdiscs."""
    monkeypatch.setattr(extras, "missing", lambda extra: list(extras.MODULES[extra]))
    monkeypatch.setattr(agents, "find", lambda: None)
    monkeypatch.setattr(features, "qdiscs", list)
    monkeypatch.setattr(namespaces, "RUN", tmp_path)


def shown(findings, width):
    console = plain(width)
    console.file = io.StringIO()
    doctor.show(findings, doctor.readiness(findings), ["reno", "cubic"], console)
    return console.file.getvalue()


@pytest.mark.parametrize("extra", ["kernel", "controller"])
def test_a_remedy_names_the_extra_in_brackets(bare, narrows, extra):
    assert f"pip install 'narrows[{extra}]'" in narrows("doctor")[1]


def test_the_verdicts_come_first(bare, narrows):
    first, *_ = narrows("doctor")[1].splitlines()
    assert first == "sim (simulate): ready"


def test_lines_fit_a_terminal_of_80_columns(bare):
    findings = [*doctor.examine(), Finding("program", True, (), "tests", "", "/a/long/path" * 9)]
    text = shown(findings, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    squeezed = "".join(text.split())
    assert "/a/long/path" in squeezed and "scenarios" in squeezed


def test_each_finding_is_one_line_without_a_terminal(bare, narrows):
    findings = doctor.examine()
    text = narrows("doctor")[1]
    for finding in findings:
        (row,) = [row for row in text.splitlines() if row.startswith(f"{finding.name}  ")]
        assert finding.have or row.rstrip().endswith(finding.remedy)
    assert plain(width=None).width == WIDEST


def test_a_name_with_brackets_and_colons_is_printed_unchanged(monkeypatch, narrows, tmp_path):
    scenario = tmp_path / "my.toml"
    scenario.write_text(
        'name = "my"\nduration = "1s"\n[topology]\nkind = "dumbbell"\nrate = "10mbit"\nrtt = "20ms"\n'
        '[[flows]]\nname = "a[bold]:x:"\ncc = "cubic"\n'
    )
    monkeypatch.chdir(tmp_path)
    for command in ("run", "show"):
        code, out, err = narrows(command, scenario)
        assert (code, err) == (0, "")
        assert "a[bold]:x: " in out


STATUS = {
    "name": "sender",
    "namespaces": [
        {"path": "/run/netns/h1", "present": False, "refusal": ""},
        {"path": "/run/netns/h2", "present": True, "refusal": ""},
    ],
    "interfaces": [
        {"name": "eth0", "netns": "/run/netns/h1", "present": False, "refusal": ""},
        {
            "name": "eth0",
            "netns": "/run/netns/h2",
            "present": False,
            "refusal": "an interface can have at most 63 programs",
        },
        {"name": "eth1", "netns": "/run/netns/h2", "present": True, "refusal": ""},
    ],
}
SWITCH = {"name": "switch", "interfaces": [{"name": "eth1", "netns": None, "present": False}]}
IDLE = {"name": "idle", "interfaces": [{"name": "eth2", "netns": None, "present": True}]}


def test_doctor_names_what_running_agents_wait_for(bare, monkeypatch, narrows, tmp_path):
    program = tmp_path / "narrows-agent"
    shown = "\n".join(json.dumps(status, indent=2) for status in (STATUS, SWITCH, IDLE))
    program.write_text(f"#!/bin/sh\n[ \"$*\" = 'status --json' ] && cat <<'END'\n{shown}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setattr(agents, "find", lambda: program)
    lines = narrows("doctor")[1].splitlines()
    assert [line for line in lines if "waits for" in line] == [
        "agent sender waits for: namespace /run/netns/h1, "
        "interface eth0 in /run/netns/h2 (refused: an interface can have at most 63 programs)",
        "agent switch waits for: interface eth1",
    ]
    data = json.loads(narrows("doctor", "--json")[1])
    assert data["waiting"]["switch"] == ["interface eth1"]


def test_doctor_works_if_no_agent_answers(bare, monkeypatch, narrows, tmp_path):
    # `doctor` also checks the saved guest, which contains narrows-agent. So a file of narrows-agent must
    # exist.
    program = tmp_path / "narrows-agent"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(agents, "find", lambda: program)
    code, out, err = narrows("doctor", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["waiting"] == {}
    assert running.parse("no agent runs on this host") == []
