"""A minute of the soak: agents and controllers under faults and attacks. `make soak` runs longer soaks."""

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
    # The machine may have no bpffs, so the soak has its own mounts.
    script = 'mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf; exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, SOAK, "--minutes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failures = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    if failures or done.returncode > 1 or "Soak with seed" not in done.stdout:
        pytest.fail(done.stdout[-6000:] + done.stderr[-6000:])
