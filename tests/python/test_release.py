"""`make release`: what it puts into dist/, and what it says of a part that cannot be built."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
release = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(release)

MAKEFILE = """\
good:
\t@echo data > dist/good.whl
bad:
\t@echo compiling; echo 'error: no linker' >&2; exit 1
lazy:
\t@true
"""


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    """A project with a part that can be built, one that cannot, and one that leaves no file."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.whl").write_text("of an earlier release")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    monkeypatch.setattr(release, "LOGS", tmp_path / "target" / "release-logs")

    def call(names, *words):
        parts = tuple(release.Part(name, (name,), (f"{name}.whl",)) for name in names)
        monkeypatch.setattr(release, "PARTS", parts)
        monkeypatch.setattr(sys, "argv", ["release.py", *words])
        return release.main(), capsys.readouterr().out.splitlines()

    return call


def test_a_complete_release_has_checksums_that_hold(project, tmp_path):
    code, out = project(["good"])
    assert code == 0
    assert out[-1].endswith("dist/ is complete")
    assert sorted(path.name for path in (tmp_path / "dist").iterdir()) == ["SHA256SUMS", "good.whl"]
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "dist", check=True)


def test_a_part_that_fails_gives_a_one_line_error_and_fails_the_release(project, tmp_path):
    code, out = project(["bad", "lazy", "good"])
    assert code == 1
    assert out[0] == "bad: error: no linker (target/release-logs/bad.log)"
    assert out[1] == "lazy: `make lazy` left no dist/lazy.whl"
    assert out[2].startswith("good: built in ")
    assert out[-1].endswith("missing bad, lazy")
    assert (tmp_path / "dist" / "good.whl").exists()


def test_a_partial_release_may_lack_parts(project):
    code, out = project(["bad", "good"], "--partial")
    assert code == 0
    assert out[-1].endswith("missing bad")


def test_chosen_parts_leave_the_others_in_place(project, tmp_path):
    code, _ = project(["bad", "good"], "good")
    assert code == 0
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {"SHA256SUMS", "good.whl", "old.whl"}


def test_an_unknown_part_is_refused_before_anything_is_removed(project, tmp_path):
    with pytest.raises(SystemExit) as refused:
        project(["good"], "godo")
    assert refused.value.code == 2
    assert (tmp_path / "dist" / "old.whl").exists()


def test_every_part_is_a_target_of_the_makefile():
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ":" in line}
    words = {word for target in targets for word in target.split()}
    assert {target for part in release.PARTS for target in part.targets} <= words
