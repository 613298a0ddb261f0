"""A minute of the soak: agents and controllers under faults and attacks. `make soak` runs longer ones."""

import subprocess
import sys
from pathlib import Path

import pytest
from narrows.backends.kernel import features
from narrows.errors import NarrowsError

SOAK = Path(__file__).parents[3] / "tools/soak"


def test_a_minute_under_faults_leaks_nothing_and_starves_no_flow(agent, lacking):
    try:
        features.require(features.tools, features.sdn)
        features.require(features.kernel, parts=("deploy",))
    except NarrowsError as missing:
        lacking(str(missing))
    done = subprocess.run(
        [sys.executable, SOAK, "--minutes", "1"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(done.stdout[-6000:] + done.stderr[-6000:])
    assert "FAILED" not in done.stdout
