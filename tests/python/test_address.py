"""`tools/address.py` changes the project's address in `Cargo.toml` and in all other files that contain it."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "address.py"))
NEW = ("https://example.org/group/other", "https://docs.example.org/other/")
OURS = re.compile(r"https://(?:github\.com/[\w.-]+/narrows|[\w.-]+\.github\.io/narrows)\b")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name]


@pytest.fixture
def copy(tmp_path):
    """A repository with the files that contain the address, and one other file."""
    stated = TOOL["stated"](ROOT)
    for path in TOOL["repeated"](ROOT, [*stated, TOOL["team"](stated[0])]):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (tmp_path / "pins.txt").write_text("/sys/fs/bpf/narrows-cc")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def test_no_file_has_another_address_of_this_project():
    known = tuple(TOOL["stated"](ROOT))
    found = {}
    for name in tracked():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        if strange := [
            url for url in OURS.findall(text) if not url.startswith(known) and f"{url}/" not in known
        ]:
            found[name] = strange
    assert not found


def test_setting_the_address_leaves_no_trace_of_the_old_one(copy, capsys):
    old = TOOL["stated"](copy)
    assert TOOL["main"](list(NEW), copy) == 0
    changed = capsys.readouterr().out.split()
    assert TOOL["stated"](copy) == NEW
    assert {"Cargo.toml", "pyproject.toml", "README.md", "CITATION.cff", ".github/CODEOWNERS"} <= set(changed)
    rest = "".join(
        path.read_text() for path in copy.rglob("*") if path.is_file() and ".git/" not in str(path)
    )
    assert not any(text in rest for text in (*old, TOOL["team"](old[0])))
    assert (copy / ".github/CODEOWNERS").read_text() == "* @group/maintainers\n"
    assert (copy / "pins.txt").read_text() == "/sys/fs/bpf/narrows-cc"
    assert TOOL["main"](list(old), copy) == 0
    diff = subprocess.run(["git", "diff", "--stat"], cwd=copy, check=True, capture_output=True, text=True)
    assert diff.stdout == ""


@pytest.mark.parametrize(
    "words", [NEW[:1], ("http://a/b/c", NEW[1]), (NEW[0] + "/", NEW[1]), (NEW[0], NEW[1][:-1]), (*NEW, "x")]
)
def test_an_address_of_another_form_is_refused(copy, capsys, words):
    assert TOOL["main"](list(words), copy) == 2
    assert capsys.readouterr().err.startswith("found ")
    assert TOOL["stated"](copy) == TOOL["stated"](ROOT)


def test_without_git_nothing_is_set(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    shutil.copy(ROOT / "Cargo.toml", tmp_path)
    assert TOOL["main"](list(NEW), tmp_path) == 2
    _, err = capfd.readouterr()
    assert err.startswith("fatal: not a git repository") and err.count("\n") == 1
    assert TOOL["stated"](tmp_path) == TOOL["stated"](ROOT)
