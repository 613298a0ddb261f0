"""The commands of the tutorial "Put BRF on a Linux bridge" run as root, in network namespaces."""

import os
from pathlib import Path

from narrows.backends.kernel import agents
from tutorial import ROOT, compare, run

NAMES = ("tut-sender", "tut-switch", "tut-receiver")
TEAR_DOWN = (
    "set +e; kill $(jobs -p) 2>/dev/null; kill $(cat iperf3.pid 2>/dev/null) 2>/dev/null; wait; "
    f"for name in {' '.join(NAMES)}; do ip netns delete $name 2>/dev/null; done; true"
)


def test_put_brf_on_a_linux_bridge(tmp_path, agent, lacking, tidy):
    """If the sender has an agent, its flows are `rated`. Otherwise, they are `other`. Figures may vary."""
    taken = [name for name in NAMES if Path("/run/netns", name).exists()]
    if taken:
        lacking(f"a network namespace is called {taken[0]} already")
    program = Path(agents.find())
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    page = ROOT / "docs/tutorials/brf-on-a-bridge.md"
    compare(page, run(page, tmp_path, environment, TEAR_DOWN))
    assert not [name for name in NAMES if Path("/run/netns", name).exists()]
