"""Runs agents and controllers under faults and attacks, and checks that nothing leaks and no flow starves.

    tools/soak --minutes 60 --seed 1        # .venv/bin/python tools/soak, as root

During the soak, flows with a common bottleneck of 100 Mbit/s start and end. The soak kills and restarts
agents and controllers, and takes interfaces down or removes them. A host that is not on the path forges
packets. The seed determines the faults. The exit code is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

from narrows.backends.kernel import features
from narrows.backends.kernel.agents import program
from narrows.cli.commands.shared import INTERRUPTED
from narrows.cli.options import checked_seed
from narrows.errors import NarrowsError
from narrows.signals import terminable, undisturbed
from network import Network
from programs import Programs
from report import report
from run import Soak
from schedule import schedule


def parsed(words: list[str]) -> argparse.Namespace:
    """The options. An invalid option ends the program with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=positive, default=3.0, help="time under load, min (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the faults (default: 1)")
    parser.add_argument(
        "--every", type=positive, default=8.0, help="mean time between faults, s (default: 8)"
    )
    parser.add_argument("--no-pin", action="store_true", help="end the data plane when the agent ends")
    parser.add_argument(
        "--keep", type=new_folder, help="folder for logs and configurations (default: not kept)"
    )
    return parser.parse_args(words)


def positive(text: str) -> float:
    """A number above 0; for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number above 0")
    return number


def new_folder(text: str) -> Path:
    """An empty folder, for argparse. In a used folder, the checks would also read old logs."""
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"found {text!r} ({error.strerror}), expected a new folder"
        ) from None
    if not is_empty:
        raise argparse.ArgumentTypeError(f"found {text!r} with files, expected a new or empty folder")
    return folder.resolve()


def soak(options: argparse.Namespace, folder: Path) -> int:
    """Runs the soak, and returns the exit code."""
    seconds = 60 * options.minutes
    faults = list(schedule(options.seed, seconds, options.every))
    network = Network(folder)
    run = Soak(network, Programs(network, program(), options.seed, not options.no_pin), faults, options.seed)
    try:
        run.start()
        run.load(seconds)
        run.finish()
        run.end()
    finally:
        with undisturbed():
            run.close()
    title = f"Soak with seed {options.seed}{', not pinned' if options.no_pin else ''}"
    print(report(run.result, list(run.programs.deployed.values()), title))
    return 1 if run.result.failures else 0


def main() -> int:
    """Checks the options and the machine, and runs the soak."""
    options = parsed(sys.argv[1:])
    try:
        checked_seed(options.seed)
        features.require(features.root, features.tools, features.sdn)
        features.require(features.agent, features.kernel, features.qdiscs, parts=("deploy",))
        if not options.no_pin and not features.is_bpffs(features.BPFFS):
            remedy = f"mount -t bpf bpf {features.BPFFS}, or use --no-pin"
            raise NarrowsError(f"found no bpffs at {features.BPFFS}: {remedy}")
        with terminable(), tempfile.TemporaryDirectory(prefix="narrows-soak-") as temporary:
            return soak(options, options.keep or Path(temporary))
    except NarrowsError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
