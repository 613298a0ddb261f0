"""A failed test in real time is skipped only if the host disturbed every attempt."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
KERNEL = Path(__file__).parent / "kernel"
TEST = """
import pytest
attempts = iter(OUTCOMES)
@pytest.mark.flaky(reruns=2)
def test_measured():
    outcome = next(attempts)
    if outcome is not None:
        raise outcome
"""


@pytest.mark.parametrize(
    ("stolen", "outcomes", "expected"),
    [
        ([0.5, 0.5, 0.5], "[AssertionError] * 3", "skipped"),
        ([0.5, 0.0, 0.5], "[AssertionError] * 3", "failed"),
        ([0.0, 0.0, 0.0], "[AssertionError] * 3", "failed"),
        ([0.5, 0.5, 0.5], "[AssertionError, AssertionError, None]", "passed"),
        ([0.5, 0.5, 0.5], "[ValueError] * 3", "failed"),
    ],
)
def test_disturbed_attempts(pytester, stolen, outcomes, expected):
    pytester.makeconftest(f"""
import sys
sys.path.insert(0, {str(KERNEL)!r})
import patience
from patience import pytest_runtest_call, pytest_runtest_makereport
now, taken, shares = [0.0], [0.0], iter({stolen})
patience.os.cpu_count = lambda: 1
patience.time = type("Clock", (), {{"monotonic": staticmethod(lambda: now[0])}})
calls = iter(range(1000))
def stolen_s():
    if next(calls) % 2:
        now[0] += 1.0
        taken[0] += next(shares)
    return taken[0]
patience.stolen_s = stolen_s
""")
    pytester.makepyfile(TEST.replace("OUTCOMES", outcomes))
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-rs")
    counts = result.parseoutcomes()
    assert {name: counts.get(name, 0) for name in ("passed", "failed", "skipped")} == {
        name: int(name == expected) for name in ("passed", "failed", "skipped")
    }
    if expected == "skipped":
        result.stdout.fnmatch_lines(["*NOT JUDGED after 3 attempts*50%, 50%, 50% of the time*"])
