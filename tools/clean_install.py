"""Installs a wheel of narrows as a user does, and measures the time to the first table.

    python tools/clean_install.py dist/narrows-*_x86_64.whl

In a temporary folder, pip installs the wheel into a new virtual environment. It installs only binary
packages. PATH contains only the programs of this environment, so the installation cannot use a compiler or
the repository. The script prints the times, and does not check them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import venv
from itertools import pairwise
from pathlib import Path

SCENARIO = """\
[topology]
kind = "dumbbell"
rate = "50mbit"
rtt = "20ms"

[[flows]]
cc = "cubic"

[[flows]]
cc = "bbr"
"""


class Installation:
    """A virtual environment. PATH has only its programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "venv" / "bin"
        kept = ("HOME", "LANG", "TMPDIR")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name in kept or name.startswith(("PIP_", "SSL_"))
        } | {"PATH": str(self.programs)}
        # Installing pip into the environment would take seconds. Therefore, the pip of the Python that runs
        # this script installs the packages into the environment.
        venv.create(folder / "venv", with_pip=False)

    def call(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in `folder`."""
        return self._run(str(self.programs / program), *words)

    def _pip(self, *words: str) -> subprocess.CompletedProcess[str]:
        into = ("--python", str(self.programs / "python"), "--disable-pip-version-check")
        return self._run(sys.executable, "-m", "pip", *into, *words)

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, *requirements: str) -> None:
        """Install binary packages.

        Raises:
            RuntimeError: if pip fails. The message is pip's last line.
        """
        done = self._pip("install", "--quiet", "--only-binary", ":all:", *requirements)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["pip gave no reason"])[-1])

    def packages(self) -> dict[str, str]:
        """Name and version of every installed package."""
        done = self._pip("list", "--format", "json")
        return {one["name"].lower(): one["version"] for one in json.loads(done.stdout)}

    def megabytes(self) -> float:
        """Size of the environment's files."""
        return sum(path.stat().st_size for path in (self.folder / "venv").rglob("*") if path.is_file()) / 1e6


FIND_AGENT = "from narrows.backends.kernel import agents; print(agents.find())"


def check_extras(wheels: Path, version: str, *options: str) -> str:
    """Install Narrows with the agent and reports from a folder of wheels, and use them.

    Args:
        wheels: folder with the wheels of Narrows and of the agent
        version: version of both
        options: further options of pip

    Returns:
        the reason why the installation does not work, or an empty text
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            (narrows,) = wheels.resolve().glob(f"narrows-{version}-*_{platform.machine()}.whl")
            (agent,) = wheels.resolve().glob(f"narrows_agent-{version}-*_{platform.machine()}.whl")
        except ValueError:
            return f"{wheels}: expected one wheel of Narrows and one of the agent for this machine"
        try:
            installation = Installation(Path(folder))
            installation.install(*options, f"{narrows}[kernel,report]", str(agent))
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            return str(error)
        (Path(folder) / "my.toml").write_text(SCENARIO)
        expected = {
            ("narrows", "--version"): f"narrows {version}",
            ("narrows-agent", "--version"): f"narrows-agent {version}",
            ("python", "-c", FIND_AGENT): str(installation.programs / "narrows-agent"),
            ("narrows", "run", "my.toml"): "bottleneck",
            ("narrows", "report", "results/my"): "report.html",
        }
        for (program, *words), text in expected.items():
            try:
                done = installation.call(program, *words)
            except OSError as error:
                return f"{program}: {error.strerror}"
            if done.returncode or text not in done.stdout:
                reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
                return f"`{program} {' '.join(words)}` printed no {text!r}: {reason}"
    return ""


def main() -> int:
    """Install and run Narrows, and print the time of each step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path, help="the wheel to install")
    parser.add_argument("--no-cache", action="store_true", help="download every package, as on a new machine")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = [("start", time.monotonic())]
        installation = Installation(Path(folder))
        times.append(("virtual environment", time.monotonic()))
        empty = installation.megabytes()
        installation.install(*(["--no-cache-dir"] if given.no_cache else []), str(given.wheel.resolve()))
        times.append(("pip install", time.monotonic()))
        (Path(folder) / "my.toml").write_text(SCENARIO)
        done = installation.call("narrows", "run", "my.toml")
        times.append(("narrows run", time.monotonic()))
        print(done.stdout, done.stderr, sep="")
        for (_, before), (step, after) in pairwise(times):
            print(f"{after - before:6.1f} s  {step}")
        print(f"{times[-1][1] - times[0][1]:6.1f} s  from the empty folder to the first table")
        size = installation.megabytes() - empty
        print(f"{len(installation.packages())} packages, {size:.0f} MB")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
