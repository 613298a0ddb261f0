"""Fixtures of the kernel backend's tests."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from narrows import sweep
from narrows.backends.kernel import agency, features, namespaces
from narrows.backends.kernel.shell import KernelError
from narrows.scenario.load import loads
from patience import pytest_runtest_call, pytest_runtest_makereport

__all__ = ["pytest_runtest_call", "pytest_runtest_makereport"]


@pytest.fixture
def plan():
    resolver = sweep.Resolver(sweep.simulator())
    return lambda text: resolver(loads(text))


@pytest.fixture
def real():
    """Skips or fails the test if the kernel backend cannot run."""
    try:
        features.require(features.root, features.tools, features.emulator, features.qdiscs)
    except KernelError as lacking:
        _lacking(str(lacking))


@pytest.fixture
def agent(real):
    """Like `real`, and also needs narrows-agent."""
    found = features.agent()
    if not found.have:
        _lacking(found.line)


def _lacking(line: str) -> None:
    if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
        pytest.fail(f"NARROWS_REQUIRE_KERNEL=1, but {line}")
    pytest.skip(line)


@pytest.fixture
def lacking():
    """Skips the test with a reason, or fails it if NARROWS_REQUIRE_KERNEL=1."""
    return _lacking


@pytest.fixture
def backend():
    from narrows.backends.kernel.backend import Kernel

    return Kernel()


@pytest.fixture
def ovs():
    """Skips or fails the test if Open vSwitch is missing."""
    if shutil.which("ovs-vswitchd") is None:
        _lacking("found no ovs-vswitchd: install openvswitch-switch")


@pytest.fixture
def tidy():
    """Checks that a run leaves no namespaces, processes, folders or devices."""
    before = _traces()
    yield
    assert _traces() - before == set()


def _may_be_ours(name: str) -> bool:
    """Whether the name contains the id of this process, or of a process that has ended."""
    parts = name.split("-")
    return parts[0] == "nrw" and (parts[1] == str(os.getpid()) or not namespaces._alive(int(parts[1])))


def _traces() -> set[str]:
    found = {name for name in namespaces._entries(namespaces.RUN) if _may_be_ours(name)}
    found |= {str(pid) for pid in namespaces.inside(found)}
    found |= {name for name in namespaces._entries(namespaces.FILES) if _may_be_ours(name)}
    found |= {path.name for path in agency.SOCKETS.glob("nrw-*") if _may_be_ours(path.name)}
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=False).stdout
    return found | {line.split()[0] for line in links.splitlines()}
