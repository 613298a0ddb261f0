"""Runs agents and controllers under faults and attacks, and checks that nothing leaks and no flow starves.

    tools/soak --minutes 60 --seed 1        # .venv/bin/python tools/soak, as root

Flows start and end at a switch of 100 Mbit/s. The soak kills and restarts agents and controllers, and takes
interfaces down or removes them. A host off the path forges packets. The seed determines the faults.
The exit code is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from narrows.backends.kernel.agents import find
from network import Network
from programs import Programs
from report import report
from run import Soak
from schedule import schedule


def main() -> int:
    """Runs the soak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="time under load, min (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the faults (default: 1)")
    parser.add_argument("--every", type=float, default=8, help="mean time between faults, s (default: 8)")
    parser.add_argument("--no-pin", action="store_true", help="end the data plane with the agent")
    parser.add_argument("--keep", type=Path, help="folder for logs and configurations (default: not kept)")
    options = parser.parse_args()
    agent = find()
    if os.geteuid() != 0 or agent is None:
        missing = "root" if agent else "narrows-agent (make agent)"
        print(f"soak: expected {missing}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    faults = list(schedule(options.seed, 60 * options.minutes, options.every))
    with tempfile.TemporaryDirectory(prefix="narrows-soak-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        network = Network(folder.resolve())
        soak = Soak(network, Programs(network, agent, options.seed, not options.no_pin), faults, options.seed)
        try:
            soak.start()
            soak.load(60 * options.minutes)
            soak.finish()
            soak.end()
        finally:
            soak.close()
        title = f"Soak with seed {options.seed}{', not pinned' if options.no_pin else ''}"
        print(report(soak.result, list(soak.programs.deployed.values()), title))
    return 1 if soak.result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
