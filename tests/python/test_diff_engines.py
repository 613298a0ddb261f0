"""`narrows diff --scenario` with engines of git revisions, from a small repository and a fake compiler."""

import os
import shutil
import subprocess
import textwrap

import pytest
from narrows.diff import engines
from narrows.errors import NarrowsError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

CARGO = """\
#!/bin/sh
grep -q broken engine.txt && { echo "error: cannot compile engine.txt" >&2; exit 101; }
mkdir -p "$CARGO_TARGET_DIR/release"
echo built >> "$CARGO_TARGET_DIR/../builds"
cp engine.txt "$CARGO_TARGET_DIR/release/lib_native.so"
"""
MAIN = """\
import pathlib, sys
module = pathlib.Path(__file__).with_name("_native.abi3.so").read_text().strip()
if module == "fails":
    sys.exit("s.toml: found 'x', expected another")
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True)
(out / "words").write_text(" ".join([module, *sys.argv[1:]]))
"""


def git(folder, *words):
    env = {
        **os.environ,
        **{f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, env=env)


@pytest.fixture
def clone(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    cargo = tmp_path / "bin/cargo"
    cargo.write_text(CARGO)
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}:{os.environ['PATH']}")
    root = tmp_path / "clone"
    (root / "crates/narrows-py").mkdir(parents=True)
    (root / "crates/narrows-py/Cargo.toml").write_text("")
    (root / "python/narrows").mkdir(parents=True)
    (root / "python/narrows/__init__.py").write_text("")
    (root / "python/narrows/__main__.py").write_text(textwrap.dedent(MAIN))
    git(tmp_path, "init", "-q", str(root))
    for tag, text in (("good", "good"), ("fails", "fails"), ("broken", "broken")):
        (root / "engine.txt").write_text(text)
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", tag)
        git(root, "tag", tag)
    return root


def built(clone, tag, said=None):
    return engines.build(clone, engines.find_commit(clone, tag), (said if said is not None else []).append)


def test_an_engine_runs_the_scenario_of_its_revision(clone, tmp_path):
    options = engines.Options(("a=1",), 3, 4, None)
    built(clone, "good").run(tmp_path / "s.toml", tmp_path / "out", options)
    words = (tmp_path / "out/words").read_text()
    assert words == f"good run {tmp_path / 's.toml'} --out {tmp_path / 'out'} --seed 3 --seeds 4 --set a=1"


def test_a_commit_is_built_once(clone):
    said = []
    for _ in range(2):
        built(clone, "good", said)
    assert len(said) == 1
    assert (clone / "target/diff/builds").read_text() == "built\n"


def test_a_failed_build_leaves_no_module_and_gives_one_line(clone):
    commit = engines.find_commit(clone, "broken")
    with pytest.raises(
        NarrowsError, match=rf"^{commit[:8]}: cargo cannot build narrows-py: error: cannot compile"
    ):
        built(clone, "broken")
    assert not list((clone / "target/diff").rglob("_native*"))


def test_a_failed_run_gives_the_line_of_the_engine(clone, tmp_path):
    with pytest.raises(NarrowsError, match=r"^\w{8}: s\.toml: found 'x', expected another$"):
        built(clone, "fails").run(tmp_path / "s.toml", tmp_path / "out", engines.Options())


def test_an_unknown_revision_gives_one_line(clone):
    with pytest.raises(NarrowsError, match=r"^found 'nothing', expected a git revision of "):
        engines.find_commit(clone, "nothing")


def test_revisions_need_a_clone(narrows, tmp_path, monkeypatch, clone):
    (tmp_path / "s.toml").write_text(
        '[topology]\nkind = "dumbbell"\nrate = "10mbit"\nrtt = "20ms"\n[[flows]]\n'
    )
    monkeypatch.chdir(tmp_path)
    line = f"--scenario: found no clone of Narrows in {tmp_path}, expected one to build engines\n"
    assert narrows("diff", "--scenario", "s.toml", "good", "fails") == (2, "", line)


SCENARIO = "[topology]\nkind = 'dumbbell'\nrate = '10mbit'\nrtt = '20ms'\n[[flows]]\n"


def test_results_of_an_earlier_call_are_not_mixed_in(narrows, tmp_path, monkeypatch, clone):
    monkeypatch.chdir(clone)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "old").write_text("")
    (clone / "s.toml").write_text(SCENARIO)
    code, out, err = narrows("diff", "HEAD", "HEAD", "--scenario", "s.toml", "--keep", tmp_path / "kept")
    assert (code, out) == (2, "")
    assert err.startswith("--keep: found '") and err.endswith(", expected a new or empty folder\n")


def test_a_wrong_scenario_gives_one_line_before_any_build(narrows, tmp_path, monkeypatch, clone):
    (tmp_path / "s.toml").write_text("durations = 1")
    monkeypatch.chdir(clone)
    code, out, err = narrows("diff", "--scenario", tmp_path / "s.toml", "good", "fails")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "durations" in err
    assert not (clone / "target").exists()
