"""`tools/prerequisites.py`: what `make test` installs, or leaves out with one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "prerequisites.py"


@pytest.fixture
def bare(tmp_path):
    """Runs the script on a machine without any program, hence without a package manager."""

    def call(*words, **environment):
        # The script adds the folders of system programs to PATH, so these are hidden, too.
        source = SCRIPT.read_text().replace('"/usr/local/sbin:/usr/sbin:/sbin"', '""')
        copy = tmp_path / "prerequisites.py"
        copy.write_text(source)
        kept = {key: value for key, value in os.environ.items() if key != "NARROWS_REQUIRE_KERNEL"}
        return subprocess.run(
            [sys.executable, str(copy), *words],
            env={**kept, "PATH": str(tmp_path), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return call


def test_a_machine_without_tools_gets_one_line_and_may_go_on(bare):
    done = bare("prepare")
    lines = [line for line in done.stderr.splitlines() if line.startswith("make test leaves out")]
    assert done.returncode == 0
    assert len(lines) == 1
    for part in ("the agent (found no cc", "tests in a browser (found no chromium)", "tests on the kernel ("):
        assert part in lines[0]


def test_a_missing_part_fails_if_everything_is_required(bare):
    assert bare("prepare", NARROWS_REQUIRE_KERNEL="1").returncode == 2


def test_has_answers_by_its_exit_code_alone(bare):
    done = bare("has", "agent")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_missing_required_part_gives_a_one_line_error_with_the_packages(bare):
    done = bare("require", "agent")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "found no cc, make, clang" in done.stderr
    assert "apt-get install autoconf" in done.stderr
