"""`make release`: its files in dist/, and its message about a failed part."""

import importlib.util
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The script imports its neighbour clean_install.
sys.path.append(str(ROOT / "tools"))
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
    """A project with three parts. One part is built, one fails, and one leaves no file."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.whl").write_text("of an earlier release")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    monkeypatch.setattr(release, "LOGS", tmp_path / "target" / "release-logs")
    monkeypatch.setattr(release.clean_install, "check_extras", lambda *_: "")

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


def test_wheels_that_do_not_work_fail_the_release(project, monkeypatch):
    monkeypatch.setattr(release.clean_install, "check_extras", lambda *_: "no wheel fits")
    for words in ((), ("--partial",)):
        code, out = project(["good"], *words)
        assert code == 1
        assert "installed and run: no wheel fits" in out
        assert out[-1].endswith("the wheels of this machine do not work")


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


def test_a_file_of_an_earlier_build_does_not_count_as_built(project, tmp_path):
    (tmp_path / "dist" / "lazy.whl").write_text("of an earlier build")
    code, out = project(["lazy"], "lazy")
    assert code == 1
    assert out[0] == "lazy: `make lazy` left no dist/lazy.whl"
    assert not (tmp_path / "dist" / "lazy.whl").exists()


def test_checksums_cover_the_artifacts_of_this_release_only(project, tmp_path):
    (tmp_path / "dist" / "bad.whl").write_text("built before")
    code, _ = project(["bad", "good"], "good")
    assert code == 0
    sums = (tmp_path / "dist" / "SHA256SUMS").read_text().splitlines()
    assert [line.split()[1] for line in sums] == ["bad.whl", "good.whl"]


@pytest.mark.parametrize("part", release.PARTS, ids=lambda part: part.name)
def test_a_build_first_removes_the_files_of_its_part_of_any_version(part, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "DIST", tmp_path)
    own = {pattern.replace("*", "-1_") for pattern in part.artifacts}
    own |= {name.replace(release.VERSION, "0.0.9") for name in own}
    assert len(own) == 2 * len(part.artifacts)
    others = {
        pattern.replace("*", "-1_")
        for other in release.PARTS
        if not set(other.artifacts) & set(part.artifacts)
        for pattern in other.artifacts
    }
    for name in own | others:
        (tmp_path / name).write_text("")
    release.remove_earlier(part)
    assert {path.name for path in tmp_path.iterdir()} == others


@pytest.fixture
def collecting(tmp_path, monkeypatch):
    (tmp_path / "dist").mkdir()
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    return tmp_path


def test_the_packed_documentation_holds_the_whole_site(collecting):
    pages = {"index.html": "start", "how-to/install/index.html": "install"}
    for name, text in pages.items():
        (collecting / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (collecting / "site" / name).write_text(text)
    release.collect_docs()
    folder = f"narrows-docs-{release.VERSION}"
    with tarfile.open(collecting / "dist" / f"{folder}.tar.gz") as archive:
        packed = {
            one.name: archive.extractfile(one).read().decode() for one in archive.getmembers() if one.isfile()
        }
    assert packed == {f"{folder}/{name}": text for name, text in pages.items()}


CARGO = """\
#!/bin/sh
mkdir -p target/package
for word in "$@"; do
    case "$word" in narrows-*) echo "$word" > "target/package/$word-VERSION.crate";; esac
done
"""


def test_the_packages_of_all_crates_are_packed_and_copied(collecting, monkeypatch):
    """The stub of cargo writes a file for each crate."""
    programs = collecting / "programs"
    programs.mkdir()
    (programs / "cargo").write_text(CARGO.replace("VERSION", release.VERSION))
    (programs / "cargo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    release.collect_crates()
    copied = {path.name: path.read_text() for path in (collecting / "dist").iterdir()}
    assert copied == {f"{crate}-{release.VERSION}.crate": f"{crate}\n" for crate in release.CRATES}


def test_a_package_that_cargo_did_not_write_fails_its_part(collecting, monkeypatch):
    (collecting / "Makefile").write_text("crates:\n\t@true\n")
    (collecting / "logs").mkdir()
    (collecting / "programs").mkdir()
    (collecting / "programs" / "cargo").write_text("#!/bin/sh\n")
    (collecting / "programs" / "cargo").chmod(0o755)
    monkeypatch.setattr(release, "LOGS", collecting / "logs")
    monkeypatch.setenv("PATH", f"{collecting / 'programs'}:/usr/bin:/bin")
    (crates,) = (part for part in release.PARTS if part.name == "crates")
    package = collecting / "target" / "package" / f"{release.CRATES[0]}-{release.VERSION}.crate"
    assert release.build(crates) == f"{package}: No such file or directory"


def test_an_unknown_part_is_refused_before_anything_is_removed(project, tmp_path):
    with pytest.raises(SystemExit) as refused:
        project(["good"], "godo")
    assert refused.value.code == 2
    assert (tmp_path / "dist" / "old.whl").exists()


def test_every_part_is_a_target_of_the_makefile():
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ":" in line}
    words = {word for target in targets for word in target.split()}
    assert {target for part in release.PARTS for target in part.targets} <= words
