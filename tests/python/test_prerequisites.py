"""`tools/prerequisites.py` installs packages, and prints which parts of `make test` are left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "prerequisites.py"


@pytest.fixture
def bare(tmp_path):
    """Runs the script with only the programs in `tmp_path`."""

    def call(*words, **environment):
        # The script also searches the folders of system programs. In these tests, it must not find them.
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


APT = "apt-get -o DPkg::Lock::Timeout=300"
"""The start of each call. It waits for dpkg's lock, which automatic upgrades often hold."""
RECORD = """#!/bin/sh
echo "$0 $*" | sed 's:.*/::' >> {folder}/calls
"""


@pytest.fixture
def root(bare, tmp_path):
    """Runs the script as root.

    Stubs of apt-get and rustup record their calls. The stub of apt-get makes a program with the name of each
    package. It does not know the packages in `refuses`.
    """

    def call(*words, refuses=(), rustup=0, **environment):
        for name in ("sed", "touch", "chmod"):
            if not (tmp_path / name).exists():
                (tmp_path / name).symlink_to(f"/usr/bin/{name}")
        unknown = "".join(
            f'case " $* " in *" {name} "*) echo "E: no package {name}" >&2; exit 100;; esac\n'
            for name in refuses
        )
        makes = (
            "for word; do case $word in install|update|-*|DPkg::*) ;; *) touch {folder}/$word; "
            "chmod +x {folder}/$word;; esac; done\n"
        )
        stubs = {
            "apt-get": RECORD + unknown + makes,
            "rustup": RECORD + f"[ {rustup} = 0 ] || echo 'error: no network' >&2\nexit {rustup}\n",
        }
        for name, text in stubs.items():
            stub = tmp_path / name
            stub.write_text(text.replace("{folder}", str(tmp_path)))
            stub.chmod(0o755)
        (tmp_path / "sitecustomize.py").write_text("import os\nos.geteuid = lambda: 0\n")
        done = bare(*words, PYTHONPATH=str(tmp_path), **environment)
        calls = (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
        return done, calls

    return call


def test_root_installs_what_is_missing_and_nothing_else(root, tmp_path):
    (tmp_path / "flex").write_text("#!/bin/sh\n")
    (tmp_path / "flex").chmod(0o755)
    _, calls = root("prepare")
    assert calls[0] == "rustup component add rustfmt clippy"
    assert calls[1] == f"{APT} update -qq"
    assert calls[2].startswith(f"{APT} install -y -qq --no-install-recommends ")
    packages = calls[2].split()[7:]
    assert {"clang", "chromium", "iproute2", "openvswitch-switch"} <= set(packages)
    assert "flex" not in packages
    assert len(calls) == 3


def test_packages_are_installed_although_components_of_rust_are_not(root):
    done, calls = root("prepare", rustup=1)
    assert any(call.startswith(f"{APT} install") for call in calls)
    assert "`rustup component add rustfmt clippy` failed: error: no network" in done.stderr.splitlines()
    assert done.returncode == 0


def test_a_package_that_apt_does_not_know_leaves_the_others(root):
    done, calls = root("install", refuses=("chromium",))
    assert "`apt-get install chromium` failed: E: no package chromium" in done.stderr.splitlines()
    assert done.returncode == 1
    assert f"{APT} install -y -qq --no-install-recommends flex" in calls


def test_a_required_part_is_installed_and_looked_at_again(root):
    # The stub gives each program the name of its package. If a program needs another name, it stays missing.
    done, calls = root("require", "agent")
    assert "autoconf" in calls[1]
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line == (
        "found no cc, c++, llvm-strip, autoreconf, needed for the agent; "
        "as root: apt-get install autoconf g++ gcc llvm"
    )


def test_an_ordinary_user_installs_no_package(bare, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import os\nos.geteuid = lambda: 1000\n")
    stub = tmp_path / "apt-get"
    stub.write_text(RECORD.replace("{folder}", str(tmp_path)))
    stub.chmod(0o755)
    done = bare("prepare", PYTHONPATH=str(tmp_path))
    assert not (tmp_path / "calls").exists()
    assert "tests on the kernel (found no" in done.stderr and "; needs root)" in done.stderr
    assert bare("install", PYTHONPATH=str(tmp_path)).returncode == 2


def test_commands_to_run_can_be_pasted(bare):
    done = bare("require", "lint")
    assert done.stderr.endswith("; run: rustup component add rustfmt clippy\n")
