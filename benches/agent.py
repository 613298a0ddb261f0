"""Measures the agent: its control loop, its eBPF programs, and how much the programs slow down a bridge.

    python benches/agent.py            # print
    python benches/agent.py --write    # also into docs/explanation/performance.md

All measurements need cargo and clang. Without them, the script fails. The measurements of the eBPF programs
and of the bridge also need root, iperf3 and iproute2. If one of these is missing, the script prints a message
and leaves out the measurements of the eBPF programs and of the bridge. The script uses only the standard
library.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from documents import fill
from run import BenchError, cargo_bench, first_line, machine, table

ROOT = Path(__file__).resolve().parent.parent
FLOWS = (1_000, 10_000, 100_000)


def output(command: Sequence[str]) -> str:
    """The output of a command."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)} failed")
    return done.stdout


def loop() -> str:
    """Measures the agent's control loop, and returns a Markdown table."""
    program = cargo_bench("narrows-agent", "agent_loop")
    runs: list[dict[str, Any]] = [
        json.loads(line) for line in output([str(program), *map(str, FLOWS)]).splitlines()
    ]
    header = ["flows", "records", "median", "99 %", "with ALLOC", "with ALLOC, 99 %", "bytes/flow"]
    rows = [
        [
            f"{run['live']:,}",
            run["records"],
            *(f"{run[key] / 1000:.2f}" for key in ("median_us", "p99_us", "alloc_median_us", "alloc_p99_us")),
            f"{run['bytes_per_flow']:,}",
        ]
        for run in runs
    ]
    return f"{machine()}\n\nOne turn of the loop, ms of CPU time:\n\n{table(header, rows)}"


def missing() -> str | None:
    """Why this machine cannot measure the eBPF programs, or None if it can measure them."""
    if os.geteuid() != 0:
        return "root is needed"
    tools = [tool for tool in ("iperf3", "ip", "nsenter") if shutil.which(tool) is None]
    return f"{', '.join(tools)} is needed" if tools else None


def data_plane(seconds: int, repetitions: int) -> str:
    """Measures the eBPF programs, and a bridge's throughput with and without these programs."""
    command = ["cargo", "run", "--release", "--quiet", "-p", "narrows-agent", "--example", "cost", "--"]
    told = json.loads(output([*command, str(seconds), str(repetitions)]))
    header = ["part", "program", "ns/run", "runs", "verifier: instructions", "bytes", "machine code"]
    rows = [
        [
            row["part"],
            f"`{row['program']}`",
            f"{row['ns']:.0f}",
            f"{row['runs']:,}",
            f"{row['verified']:,}",
            f"{row['translated_bytes']:,}",
            f"{row['machine_bytes']:,}",
        ]
        for row in told["programs"]
    ]
    ratios = [a / b for a, b in zip(told["with"], told["without"], strict=True)]
    plain = [rate / 1e9 for rate in told["without"]]
    return (
        f"{machine(first_line('clang', '--version'))}\n\n{table(header, rows)}\n\n"
        f"Throughput of a bridge with the programs, divided by that without them, in {len(ratios)} pairs of "
        f"{seconds} s: median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f} "
        f"(without: median {statistics.median(plain):.1f} Gbit/s, from {min(plain):.1f} to {max(plain):.1f})."
    )


def main(arguments: Sequence[str]) -> int:
    """Builds and runs the benchmarks and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--write", action="store_true", help="put the result into docs/explanation/performance.md"
    )
    parser.add_argument(
        "--seconds", type=int, default=3, metavar="S", help="length of a connection (default: 3)"
    )
    parser.add_argument("--repeat", type=int, default=16, metavar="N", help="pairs of runs (default: 16)")
    options = parser.parse_args(arguments)
    if options.seconds < 1 or options.repeat < 1:
        parser.error("--seconds and --repeat: at least 1")
    try:
        parts = {"agent loop": loop()}
        if reason := missing():
            print(f"bench: the eBPF programs are left out: {reason}", file=sys.stderr)
        else:
            parts["data plane"] = data_plane(options.seconds, options.repeat)
        for name, text in parts.items():
            print(text, end="\n\n")
            if options.write:
                fill("explanation/performance.md", name, text)
    except BenchError as e:
        print(f"bench: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
