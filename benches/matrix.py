"""Compares the CPU time of `narrows matrix` with an estimate for ns-3.

    python benches/matrix.py            # print
    python benches/matrix.py --write    # also into docs/explanation/performance.md

Narrows runs the matrix of all default controllers with one buffer and one seed. The CPU time of Narrows
includes start, tables and page. ns-3 runs three pairs of controllers in the same network. The estimate for
the whole matrix assumes that every run takes the mean CPU time of these pairs. ns-3 needs g++ and Debian's
libns3-dev. If they are missing, the script prints a message and leaves out ns-3.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from documents import fill
from run import NS3_FLAGS, NS3_MODULES, BenchError, circumstances, progress, table

ROOT = Path(__file__).resolve().parent.parent
NS3_SOURCE = ROOT / "benches" / "ns3" / "narrows_matrix.cc"
BUFFER = "1bdp"
PACKETS = 333
"""One BDP at 100 Mbit/s and 40 ms, in full packets."""
BUFFERS, SEEDS = 3, 5
"""Number of buffers and seeds in the default matrix."""
CELLS = {
    ("cubic", "bbr"): ("ns3::TcpCubic", "ns3::TcpBbr"),
    ("cubic", "reno"): ("ns3::TcpCubic", "ns3::TcpLinuxReno"),
    ("reno", "vegas"): ("ns3::TcpLinuxReno", "ns3::TcpVegas"),
}
"""Pairs that both simulators support."""


@dataclass(frozen=True)
class Cost:
    """Wall time and CPU time of a process in seconds, and its output."""

    wall: float
    cpu: float
    printed: str = ""


def timed(command: list[str]) -> Cost:
    """Runs a command to its end."""
    with tempfile.TemporaryFile("w+") as out:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise BenchError(f"{' '.join(command)} ended with {process.returncode}")
        out.seek(0)
        return Cost(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, out.read())


def matrix(out: Path) -> tuple[Cost, int, dict[tuple[str, str], float]]:
    """Runs the reduced matrix. Returns its cost, number of runs, and the first flow's share in each pair."""
    narrows = Path(sys.executable).with_name("narrows")
    command = [str(narrows), "matrix", "--buffer", BUFFER, "--seeds", "1", "--out", str(out), "--no-figures"]
    cost = timed(command)
    with (out / "results" / "timing.csv").open(newline="") as file:
        runs = len(list(csv.DictReader(file)))
    with (out / "matrix.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    shares = {(row["algorithm"], row["rival"]): float(row["share"]) for row in rows if row["rival"]}
    return cost, runs, shares


def build(folder: Path) -> Path:
    """Compiles the ns-3 program, which runs one pair."""
    if not Path("/usr/include/ns3/core-module.h").is_file():
        raise BenchError("ns-3's headers are needed (Debian: apt-get install g++ libns3-dev)")
    program = folder / "narrows_matrix"
    libraries = [f"-lns3-{module}" for module in NS3_MODULES]
    command = ["g++", *NS3_FLAGS, str(NS3_SOURCE), "-o", str(program), *libraries]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(str(error)) from None
    return program


def in_ns3(program: Path) -> dict[tuple[str, str], tuple[Cost, float]]:
    """Runs three pairs in ns-3. Returns each pair's cost and the first flow's share."""
    found = {}
    for pair, types in CELLS.items():
        progress(f"{' and '.join(pair)} in ns-3 ...")
        cost = timed([str(program), *types, f"--packets={PACKETS}"])
        rates = json.loads(cost.printed)
        found[pair] = cost, rates["first_bps"] / (rates["first_bps"] + rates["second_bps"])
    progress("")
    return found


def report() -> str:
    """All measurements as Markdown."""
    with tempfile.TemporaryDirectory() as name:
        progress("narrows matrix ...")
        cost, runs, shares = matrix(Path(name, "matrix"))
        each, whole = cost.cpu / runs, runs * BUFFERS * SEEDS
        lines = [
            circumstances(1, ()),
            f"The matrix with a buffer of {BUFFER} and one seed has {runs} runs of 60 s. It took "
            f"{cost.wall:.1f} s, with {cost.cpu:.1f} s of CPU time: {1e3 * each:.0f} ms a run. With "
            f"{BUFFERS} buffers and {SEEDS} seeds it has {whole:,} runs, which take {each * whole / 60:.0f} "
            "min of CPU time at this rate.",
        ]
        try:
            theirs = in_ns3(build(Path(name)))
        except BenchError as error:
            return "\n\n".join([*lines, f"ns-3 was not run: {error}."])
    mean = statistics.mean(cost.cpu for cost, _ in theirs.values())
    header = ["cell", "", "CPU s in ns-3", "share in ns-3, %", "share here, %"]
    rows = [
        [f"{a} and {b}", "", f"{ns3.cpu:.1f}", f"{100 * share:.0f}", f"{100 * shares[a, b]:.0f}"]
        for (a, b), (ns3, share) in theirs.items()
    ]
    lines += [
        table(header, rows),
        f"With the mean of these times, {mean:.1f} s, the whole matrix would take "
        f"{mean * whole / 3600:.1f} h of CPU time in ns-3: {mean / each:.0f} times as much.",
    ]
    return "\n\n".join(lines)


def main() -> int:
    """Measures, prints and, with `--write`, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="also write to docs/explanation/performance.md")
    arguments = parser.parse_args()
    try:
        text = report()
        print(text)
        if arguments.write:
            fill("explanation/performance.md", "matrix", text)
    except BenchError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
