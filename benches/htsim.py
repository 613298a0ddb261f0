"""Runs the speed scenarios A, C, D and E on Narrows and on htsim, and prints their costs.

    python benches/htsim.py ../csg-htsim/sim           # seven times each, in turn
    python benches/htsim.py ../csg-htsim/sim --write   # also into docs/explanation/performance.md
    python benches/htsim.py                            # says what is needed

The argument is the folder `sim` of a clone of https://github.com/Broadcom/csg-htsim. The script copies this
folder, and builds htsim's library and benches/htsim/narrows_bench.cc, which needs g++ and make. It also
builds crates/narrows-sim/benches/scenarios.rs. The cost is the user and system CPU time of the whole process.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from run import DOCUMENT, ROOT, SCENARIOS, BenchError, Cost, cargo_bench, first_line, machine, run, table

SOURCE = ROOT / "benches" / "htsim" / "narrows_bench.cc"
FLAGS = ["-O3", "-DNDEBUG", "-flto"]
"""htsim's Makefile uses -O3, but keeps assertions. -flto optimises at link time, as for Narrows."""
NAMES = "ACDE"
REPEAT = 7
ADDRESS = "https://github.com/Broadcom/csg-htsim"
BEGIN, END = "<!-- htsim: begin -->", "<!-- htsim: end -->"


def build(folder: Path, sources: Path) -> Path:
    """Builds htsim's library and our program in `folder`."""
    if not (sources / "eventlist.h").is_file():
        raise BenchError(f"found no {sources / 'eventlist.h'}, expected the folder `sim` of {ADDRESS}")
    library = folder / "sim"
    shutil.copytree(sources, library, ignore=shutil.ignore_patterns("*.o", "*.a"))
    program = folder / "narrows_bench"
    commands = [
        ["make", "--silent", "-C", str(library), "libhtsim.a", f"CFLAGS=-std=c++11 {' '.join(FLAGS)}"],
        [
            "g++",
            "-std=c++17",
            *FLAGS,
            f"-I{library}",
            str(SOURCE),
            f"{library}/libhtsim.a",
            "-o",
            str(program),
        ],
    ]
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise BenchError(f"{command[0]} is needed") from None
        if done.returncode:
            raise BenchError(
                f"`{' '.join(command)}` failed: {(done.stderr.splitlines() or ['no message'])[-1]}"
            )
    return program


def commit(sources: Path) -> str:
    """The commit of htsim and its date, or a message that the folder is no clone."""
    found = first_line("git", "-C", str(sources), "log", "-1", "--format=commit %h of %cs")
    return found if found.startswith("commit ") else "of an unknown commit"


def measure(programs: dict[str, Path], repeat: int) -> list[tuple[Cost, Cost]]:
    """The costs of Narrows and of htsim for each scenario. The runs of both programs alternate."""
    pairs = []
    for scenario in SCENARIOS:
        if scenario.name in NAMES:
            runs = [{side: run(program, scenario.name) for side, program in programs.items()}
                    for _ in range(repeat)]  # fmt: skip
            ours, theirs = (Cost(scenario, side, [one[side] for one in runs]) for side in programs)
            pairs.append((ours, theirs))
    return pairs


def rows(pairs: Sequence[tuple[Cost, Cost]]) -> list[list[str]]:
    """Two rows for each scenario."""
    found = []
    for pair in pairs:
        ratio = pair[1].ns_per("delivered_packets") / pair[0].ns_per("delivered_packets")
        found += [
            [
                cost.scenario.name if cost is pair[0] else "",
                cost.side,
                f"{cost.cpu:.3f}",
                f"{100 * cost.spread / 2:.0f} %",
                f"{cost.ns_per('packet_hops'):.0f}",
                f"{cost.ns_per('delivered_packets'):.0f}",
                f"{cost.count('packet_hops') / cost.count('delivered_packets'):.1f}",
                f"{cost.count('delivered_packets'):,}",
                f"{cost.count('drops'):,}",
                f"{ratio:.1f}" if cost is pair[0] else "",
            ]
            for cost in pair
        ]
    return found


def main() -> int:
    """Measures, and prints or writes the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sim", nargs="?", type=Path, help="the folder `sim` of a clone of htsim")
    parser.add_argument(
        "--repeat", type=int, default=REPEAT, help=f"runs of each scenario (default: {REPEAT})"
    )
    parser.add_argument("--write", action="store_true", help=f"update {DOCUMENT.relative_to(ROOT)}")
    given = parser.parse_args()
    if given.repeat < 1:
        parser.error(f"--repeat: found {given.repeat}, expected at least 1")
    if given.write and BEGIN not in DOCUMENT.read_text():
        parser.error(f"found no {BEGIN} in {DOCUMENT}")
    if given.sim is None:
        print(f"htsim was not run: clone {ADDRESS}, and give its folder `sim` to benches/htsim.py")
        return 0
    header = ["", "", "CPU s", "±", "ns/packet-hop", "ns/delivered", "hops/delivered", "delivered", "drops"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            theirs = build(Path(folder), given.sim)
            programs = {"narrows": cargo_bench("narrows-sim", "scenarios"), "htsim": theirs}
            pairs = measure(programs, given.repeat)
    except BenchError as error:
        print(f"htsim: {error}", file=sys.stderr)
        return 2
    versions = f"{machine(first_line('g++', '--version'))}, htsim {commit(given.sim)}"
    stamp = f"{versions}. Medians of {given.repeat} runs; ± is half the spread."
    text = f"{stamp}\n\n{table([*header, 'htsim/ours'], rows(pairs))}"
    print(text)
    if given.write:
        page = DOCUMENT.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
