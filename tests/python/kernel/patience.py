"""Skips a failed test if the machine's host disturbed every attempt.

Measurements in real time depend on the host. Tests of such measurements have the mark `flaky`, which repeats
a failed test. If the host disturbed every attempt, the figures do not depend only on the program, so the test
is skipped. crates/narrows-lab/src/patience.rs does the same in Rust.
"""

import os
import time
from pathlib import Path

import pytest

SERIOUS = 0.01
"""If the host took at least this share of the time, the machine was disturbed."""
SHARES = pytest.StashKey[list[float]]()


def stolen_s():
    """Time that the host has taken from all processors, in seconds (`steal` of proc_stat(5))."""
    line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    return int(line.split()[8]) / os.sysconf("SC_CLK_TCK")


def unjudged(shares, attempts):
    """Returns the reason to skip a failed test, or None if the test must fail.

    `shares` has a value for each failed attempt: the part of the processor time that the host took.
    `attempts` is the number of attempts that the mark `flaky` allows.
    """
    if len(shares) < attempts or min(shares) < SERIOUS:
        return None
    taken = ", ".join(f"{share:.0%}" for share in shares)
    return f"NOT JUDGED after {attempts} attempts: the machine's host took {taken} of the time"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    begun, taken = time.monotonic(), stolen_s()
    try:
        return (yield)
    finally:
        share = (stolen_s() - taken) / (time.monotonic() - begun) / os.cpu_count()
        item.stash.setdefault(SHARES, []).append(share)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip a test if the host disturbed all attempts."""
    report = yield
    mark = item.get_closest_marker("flaky")
    if (
        mark is not None
        and report.when == "call"
        and report.failed
        and call.excinfo.errisinstance(AssertionError)
    ):
        attempts = 1 + mark.kwargs.get("reruns", 1)
        if (reason := unjudged(item.stash[SHARES], attempts)) is not None:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.reportinfo()[1] + 1, reason)
    return report
