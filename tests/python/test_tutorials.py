"""The commands of the tutorials print the output that the pages show.

The commands that install programs are skipped. A comment on the page names the tests that check them. The
Rust part of the second tutorial runs only with cargo, and uses the crates of this clone.
"""

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from tutorial import ROOT, compare, run, steps

PAGES = ROOT / "docs/tutorials"
pytestmark = pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")


@pytest.fixture
def environment():
    """Environment with `narrows` in PATH and a fixed width of the terminal."""
    commands = Path(sys.executable).parent
    return os.environ | {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "COLUMNS": "120",
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TARGET_DIR": str(ROOT / "target/tutorial"),
    }


def test_your_first_comparison(tmp_path, environment):
    page = PAGES / "first-comparison.md"
    compare(page, run(page, tmp_path, environment))
    drawn = tmp_path / "figures/points.svg"
    assert len(drawn.read_text()) > 10_000
    shown = PAGES / re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())[0]
    assert shown.read_text() == drawn.read_text(), f"copy {drawn} to {shown}"


def test_write_a_congestion_controller(tmp_path, environment):
    if shutil.which("cargo") is None:
        pytest.skip("the Rust part needs cargo")
    page = PAGES / "write-a-controller.md"
    (tmp_path / "narrows").symlink_to(ROOT)
    compare(page, run(page, tmp_path, environment))


def test_all_tutorials_are_run():
    """kernel/test_bridge_tutorial.py runs the remaining tutorial as root."""
    assert {page.name for page in PAGES.glob("*.md")} == {
        "index.md",
        "first-comparison.md",
        "write-a-controller.md",
        "brf-on-a-bridge.md",
    }


def test_a_wrong_output_is_noticed(tmp_path, environment):
    page = tmp_path / "page.md"
    for shown, varies in (("2 flows\n", False), ("3 links\n", True)):
        note = "<!-- output varies -->\n" if varies else ""
        page.write_text(f"# Page\n\n```sh\necho 3 flows\n```\n\n{note}```text\n{shown}```\n")
        with pytest.raises(AssertionError):
            compare(page, run(page, tmp_path, environment))
    page.write_text("# Page\n\n```sh\necho 3 flows\n```\n\n<!-- output varies -->\n```text\n20 flows\n```\n")
    compare(page, run(page, tmp_path, environment))


def test_a_command_that_fails_is_noticed(tmp_path, environment):
    page = tmp_path / "page.md"
    page.write_text("```sh\nfalse\necho goes on\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md stopped"):
        run(page, tmp_path, environment)
    page.write_text("```python\nprint()\n```\n")
    with pytest.raises(AssertionError, match="neither saved nor run"):
        steps(page, tmp_path)
