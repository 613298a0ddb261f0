"""Measures how the cost of a run grows with its flows and its nodes.

    python benches/growth.py                    # all points
    python benches/growth.py --points flows     # only the series with a growing number of flows
    python benches/growth.py --largest 100000   # leave out points with more flows or hosts

Each point is a run in a separate process. The points of `flows` have flows of 15 kB on a fat tree of 128
hosts. Each flow starts at a random time within 10 s, so a point with more flows has more active flows. The
points of `nodes` are fat trees with 16 to 8,192 hosts. Each host sends to another host for 10 ms at
1 Gbit/s. The CPU time of the run is separate from the CPU time for starting the process and for reading and
resolving the scenario.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEGABYTE = 1e6

FLOWS = """
duration = "11s"
ecmp = true
[topology]
name = "fat-tree"
k = 8
rate = "1gbit"
[probes]
flows = false
[[flows]]
pattern = "random"
cc = "reno"
count = {size}
size = "15kB"
start_jitter = "10s"
"""

NODES = """
duration = "10ms"
ecmp = true
[topology]
name = "fat-tree"
k = {size}
rate = "1gbit"
[probes]
flows = false
[[flows]]
pattern = "permutation"
cc = "dctcp"
start_jitter = "100us"
"""

HOSTS = 128
"""Hosts of a fat tree of switches with eight ports. `count` is the number of flows of each host."""
POINTS = {"flows": (FLOWS, (8, 80, 800, 7_800)), "nodes": (NODES, (4, 8, 16, 32))}

POINT = """
import json, resource, sys, time
from narrows.backends.sim import Simulator
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve

plan = resolve(loads(sys.stdin.read()))
backend = Simulator()
begun = time.process_time()
output = backend.run(plan)
simulated = time.process_time() - begun
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
flows = sum(flow.get("count", 1) for flow in plan["flows"])
hops = output["run"]["packet_hops"]
print(json.dumps({"nodes": len(plan["nodes"]), "flows": flows, "hops": hops, "whole_s": time.process_time(),
                  "run_s": simulated, "memory": memory}))
"""


def measure(text: str) -> dict[str, float]:
    """Run a scenario in a process of its own."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", POINT]
    done = subprocess.run(command, input=text, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"a point ended with exit code {done.returncode}:\n{text}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure the points, and print a row of a table for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", choices=POINTS, action="append", help="Series (default: all)")
    parser.add_argument(
        "--largest", type=int, default=10**6, help="Largest number of flows or hosts (default: 1000000)"
    )
    args = parser.parse_args()
    print("| nodes | flows | packet-hops | CPU of the run | per hop | other CPU | memory |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in args.points or POINTS:
        text, sizes = POINTS[name]
        for size in sizes:
            if (size * HOSTS if name == "flows" else size**3 // 4) > args.largest:
                continue
            found = measure(text.format(size=size))
            per_hop = found["run_s"] / found["hops"] * 1e9
            other = found["whole_s"] - found["run_s"]
            print(
                f"| {found['nodes']:,.0f} | {found['flows']:,.0f} | {found['hops'] / 1e6:,.2f} million "
                f"| {found['run_s']:.2f} s | {per_hop:.0f} ns | {other:.2f} s "
                f"| {found['memory'] / MEGABYTE:,.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
