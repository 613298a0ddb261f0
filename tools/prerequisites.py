"""Installs what `make test` needs (as root on Debian-based systems), or prints what is left out.

    python3 tools/prerequisites.py install           # install what is missing, fail if that is impossible
    python3 tools/prerequisites.py prepare           # install what is missing, or print what is left out
    python3 tools/prerequisites.py require python    # fail with one line if a part is incomplete
    python3 tools/prerequisites.py has agent         # exit with 0 if a part is complete, with 1 otherwise

This script runs before there is a virtual environment, so it uses only the standard library.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec

NOT_INSTALLED = 1
CANNOT_INSTALL = 2

APT = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]
"""apt-get, which waits up to 300 s for dpkg's lock: on a new machine, automatic upgrades often hold it."""

SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Folders of ip, tc and ovs-vswitchd that Debian does not put into the PATH of an ordinary user."""


@dataclass(frozen=True)
class Tool:
    """A tool and its Debian package. If rustup installs the tool, `package` is empty."""

    name: str
    package: str
    is_present: Callable[[], bool]


@dataclass(frozen=True)
class Part:
    """A part of `make test` that runs only if its tools are present."""

    subject: str
    """The part's name in messages."""
    tools: tuple[Tool, ...]
    needs_root: bool = False
    optional: bool = True
    """Whether `make test` can leave out this part."""

    def missing(self) -> list[Tool]:
        """The tools that the part needs and this machine lacks."""
        return [tool for tool in self.tools if not tool.is_present()]


def program(name: str, package: str | None = None, *others: str) -> Tool:
    """A program that has one of these names in PATH. By default, its package is also called `name`."""
    path = f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_FOLDERS}"
    return Tool(
        name,
        package or name,
        lambda: any(shutil.which(candidate, path=path) is not None for candidate in (name, *others)),
    )


def module(name: str, package: str) -> Tool:
    """A module of the Python that runs this script."""
    return Tool(f"Python's {name}", package, lambda: find_spec(name) is not None)


def component(name: str) -> Tool:
    """A component of the Rust toolchain. rustup installs it; it is not in a Debian package."""
    return Tool(name, "", lambda: succeeds(["cargo", name.removeprefix("rust"), "--version"]))


PARTS = {
    "python": Part("everything in Python", (module("ensurepip", "python3-venv"),), optional=False),
    "lint": Part("Rust's formatter and linter", (component("rustfmt"), component("clippy"))),
    # libbpf-sys builds libelf, which needs autotools. The fuzzers contain libFuzzer, which is C++.
    "agent": Part(
        "the agent",
        (
            program("cc", "gcc"),
            program("make"),
            program("clang"),
            program("c++", "g++"),
            program("llvm-strip", "llvm"),
            program("pkg-config"),
            program("autoreconf", "autoconf"),
            program("automake"),
            program("autopoint"),
            program("flex"),
            program("bison"),
            program("gawk"),
            program("m4"),
        ),
    ),
    "browser": Part("tests in a browser", (program("chromium", None, "chromium-browser"),)),
    "captures": Part("tests of packet captures", (program("tshark"),)),
    "kernel": Part(
        "tests on the kernel",
        (
            program("ip", "iproute2"),
            program("ping", "iputils-ping"),
            program("ps", "procps"),
            program("ethtool"),
            program("iperf3"),
            program("tcpdump"),
            program("curl"),
            program("ovs-vswitchd", "openvswitch-switch"),
        ),
        needs_root=True,
    ),
}


def succeeds(command: Iterable[str]) -> bool:
    """Whether a command exists and exits with 0."""
    try:
        return subprocess.run([*command], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def can_install() -> bool:
    """Whether packages can be installed: as root, with apt."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(tools: Iterable[Tool]) -> list[str]:
    """Install tools; returns one line for each package or component that could not be installed."""
    chosen = [*tools]
    packages = sorted({tool.package for tool in chosen if tool.package})
    components = [tool.name for tool in chosen if not tool.package]
    return [*install_components(components), *install_packages(packages)]


def install_components(components: list[str]) -> list[str]:
    """Install components of the Rust toolchain with rustup; returns one line for each failure."""
    if not components:
        return []
    command = ["rustup", "component", "add", *components]
    return [f"`{' '.join(command)}` failed: {reason}"] if (reason := failure(command)) else []


def install_packages(packages: list[str]) -> list[str]:
    """Install Debian packages; returns one line for each failure."""
    if not packages:
        return []
    print(f"installing {' '.join(packages)}", flush=True)
    if reason := failure([*APT, "update", "-qq"]):
        return [f"`apt-get update` failed: {reason}"]
    get = [*APT, "install", "-y", "-qq", "--no-install-recommends"]
    if not failure([*get, *packages]):
        return []
    # One unknown name makes apt-get install nothing, so each package is now installed by its own call.
    reasons = {package: failure([*get, package]) for package in packages}
    return [f"`apt-get install {package}` failed: {reason}" for package, reason in reasons.items() if reason]


def failure(command: list[str]) -> str | None:
    """Run a command without a terminal; returns the last line of its errors if it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    except OSError as error:
        return error.strerror
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def missing_line(part: Part, tools: list[Tool]) -> str:
    """An error in one line: the missing tools, the part that needs them, and commands to install them."""
    names = ", ".join(tool.name for tool in tools)
    packages = " ".join(sorted({tool.package for tool in tools if tool.package}))
    components = " ".join(tool.name for tool in tools if not tool.package)
    remedies = [f"as root: apt-get install {packages}"] if packages else []
    remedies += [f"run: rustup component add {components}"] if components else []
    return f"found no {names}, needed for {part.subject}; {'; '.join(remedies)}"


def left_out() -> str | None:
    """One line that says which parts `make test` leaves out and why; None if it covers everything."""
    reasons = []
    for part in filter(lambda part: part.optional, PARTS.values()):
        lacking = (
            [f"found no {', '.join(tool.name for tool in missing)}"] if (missing := part.missing()) else []
        )
        if part.needs_root and os.geteuid() != 0:
            lacking.append("needs root")
        if lacking:
            reasons.append(f"{part.subject} ({'; '.join(lacking)})")
    if not reasons:
        return None
    line = f"make test leaves out {', '.join(reasons)}."
    # If packages can be installed, `prepare` has already tried to install them and has printed what failed.
    return (
        line
        if can_install()
        else f"{line} As root on a Debian-based system, make test installs missing programs."
    )


def prepare() -> int:
    """Install what is missing, if possible, and print what is left out."""
    lacking = [tool for part in PARTS.values() for tool in part.missing()]
    # Components of Rust can always be installed, because rustup does not need root.
    chosen = lacking if can_install() else [tool for tool in lacking if not tool.package]
    report(install(chosen))
    if line := left_out():
        print(line, file=sys.stderr)
        # CI must fail if something is left out.
        return CANNOT_INSTALL if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1" else 0
    return 0


def report(failures: list[str]) -> int:
    """Print what could not be installed; returns an exit code."""
    for line in failures:
        print(line, file=sys.stderr)
    return NOT_INSTALLED if failures else 0


def main() -> int:
    """Carry out one of the commands of the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install")
    commands.add_parser("prepare")
    for name in ("require", "has"):
        commands.add_parser(name).add_argument("part", choices=PARTS)
    options = parser.parse_args()
    if options.command == "prepare":
        return prepare()
    if options.command == "install":
        if not can_install():
            print("make packages needs root and apt-get (Debian-based systems)", file=sys.stderr)
            return CANNOT_INSTALL
        return report(install(tool for part in PARTS.values() for tool in part.missing()))
    part = PARTS[options.part]
    missing = part.missing()
    if options.command == "has":
        return NOT_INSTALLED if missing else 0
    if missing and can_install():
        report(install(missing))
        missing = part.missing()
    if missing:
        print(missing_line(part, missing), file=sys.stderr)
        return CANNOT_INSTALL
    return 0


if __name__ == "__main__":
    sys.exit(main())
