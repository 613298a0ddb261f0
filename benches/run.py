"""Runs the speed scenarios on Narrows and on ns-3, and prints their costs.

    python benches/run.py              # all scenarios three times, on Narrows and ns-3 in turn (15 minutes)
    python benches/run.py --quick      # once each
    python benches/run.py --only A,E   # only these scenarios
    python benches/run.py --only ack   # one of the benches that measure only a controller
    python benches/run.py --write      # also into docs/explanation/performance.md (with --only: part of it)

The script builds both programs (crates/narrows-sim/benches/scenarios.rs and benches/ns3/narrows_bench.cc).
Narrows and ns-3 simulate the same scenarios and print the same counts. The cost is the user and system CPU
time of the whole process, including its start and set-up. The script needs cargo. ns-3 also needs g++ and
Debian's libns3-dev. The script uses only Python's standard library.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NS3_SOURCE = ROOT / "benches" / "ns3" / "narrows_bench.cc"
CONTROLLER_BENCHES = {
    "allocate": "One allocation over 100,000 flows (BRF-103):",
    "ack": "Each congestion controller, time per ACK (one ACK for two segments, with occasional losses):",
    "port": "Each rate controller at a port with a hundred flows (a tenth of BDR's packets are designated):",
    "pacec": "PACEC's controller with 1,000 links and 100,000 flows (`fill` reuses no earlier result):",
}
PACING = "CPU time of K for each packet delivered over that of J"
ONE_RUN_OF_A_BENCH = "One run of each bench, which prints figures of its own repetitions."
DOCUMENT = ROOT / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

# ns-3's own `optimized` profile also uses -O3. The libraries are Debian's packages.
NS3_FLAGS = ["-std=c++17", "-O3", "-DNDEBUG", "-Wall", "-Wextra"]
NS3_MODULES = ["point-to-point", "applications", "nix-vector-routing", "internet", "network", "core"]


@dataclass(frozen=True)
class Scenario:
    """A scenario of the benchmark.

    Attributes:
        name: The letter that names the scenario in both programs.
        what: Description in the legend of the table.
        seconds: Simulated time, s.
        ns3: Whether ns-3 runs the scenario, too. Otherwise, only Narrows runs it.
        speed: Whether the speed table contains the scenario. All other scenarios measure only memory.
        completions: Whether the table of flow completion times contains the scenario.
    """

    name: str
    what: str
    seconds: float
    ns3: bool = True
    speed: bool = True
    completions: bool = False


SCENARIOS = [
    Scenario("A", "2 CUBIC flows, 3 hops, 100 Mbit/s, RTT 40 ms, 1000 packets, 60 s", 60),
    Scenario("B", "the same with BBR", 60),
    Scenario("C", "100 CUBIC flows, 3 hops, 1 Gbit/s, RTT 40 ms, 4000 packets, 10 s", 10),
    Scenario("D", "2000 Reno flows/s, Poisson, Pareto sizes of 12.5 kB, 1 Gbit/s, RTT 100 ms, 10 s", 10),
    Scenario("E", "10 Gbit/s of UDP over 5 hops, 1 s", 1),
    Scenario("F", "100,000 CUBIC flows at once, nearly idle, 3 s", 3, ns3=False, speed=False),
    Scenario("G", "833,333 packets in flight on one link of 1 s", 1, speed=False),
    Scenario(
        "H", "B3 of the BDR study at full size: 2000 Reno flows/s, 1 Gbit/s, 30 s", 30, completions=True
    ),
    Scenario("I", "H with BDR in place of Reno", 30, ns3=False, completions=True),
    Scenario("J", "A with Reno in place of CUBIC", 60, ns3=False),
    Scenario("K", "A with BBR v3 in place of CUBIC", 60, ns3=False),
]
# The report compares the times of J and K, so their runs alternate. A run takes only 0.1 s (0.2 s on a busy
# machine). J and K therefore run at least `PAIRS` times each, unless `--quick` asks for one run.
PAIR = ("J", "K")
PAIRS = 15
FLOWS_IN_F = 100_000
PACKETS_IN_G = 833_333


@dataclass(frozen=True)
class Run:
    """One run of one program.

    Attributes:
        cpu: User and system time of the process, s.
        counts: The counts that the program prints: events, packet_hops, delivered_packets, ... and peak_kib.
    """

    cpu: float
    counts: dict[str, int]


@dataclass(frozen=True)
class Cost:
    """The CPU times of one simulator for one scenario.

    Attributes:
        scenario: The scenario that was run.
        side: "narrows" or "ns-3".
        runs: Repeated runs. Their counts are equal, because both simulators are deterministic.
    """

    scenario: Scenario
    side: str
    runs: list[Run]

    @property
    def cpu(self) -> float:
        """Median CPU time, s."""
        return statistics.median(run.cpu for run in self.runs)

    @property
    def spread(self) -> float:
        """The range of the CPU times, as a fraction of the median."""
        times = [run.cpu for run in self.runs]
        return (max(times) - min(times)) / self.cpu if self.cpu else 0.0

    def count(self, name: str) -> int:
        """A count that the program printed; 0 if it is missing."""
        return self.runs[0].counts.get(name, 0)

    @property
    def peak_bytes(self) -> float:
        """Median of the peak memory, bytes."""
        return 1024.0 * statistics.median(run.counts["peak_kib"] for run in self.runs)

    def ns_per(self, name: str) -> float:
        """CPU time divided by the count of this name, ns; NaN if the count is zero."""
        return 1e9 * self.cpu / self.count(name) if self.count(name) else float("nan")


class BenchError(Exception):
    """A required program failed; the message names the program."""


def cargo_bench(package: str, bench: str) -> Path:
    """Builds a bench target of the workspace and returns its path."""
    command = ["cargo", "bench", "--package", package, "--bench", bench, "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        raise BenchError(f"{' '.join(command)} failed")
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("target", {}).get("name") == bench and message.get("executable"):
            return Path(message["executable"])
    raise BenchError(f"cargo built no {bench}")


def build_ns3(folder: Path) -> Path:
    """Compiles benches/ns3/narrows_bench.cc with the installed libraries."""
    if shutil.which("g++") is None or not Path("/usr/include/ns3/core-module.h").is_file():
        raise BenchError("g++ and ns-3's headers are needed (Debian: apt-get install g++ libns3-dev)")
    program = folder / "narrows_bench"
    # Debian's .pc files of ns-3 3.37 contain a stray semicolon, so the flags are listed here.
    libraries = [f"-lns3-{module}" for module in NS3_MODULES]
    command = ["g++", *NS3_FLAGS, str(NS3_SOURCE), "-o", str(program), *libraries]
    if subprocess.run(command, check=False).returncode != 0:
        raise BenchError(f"{' '.join(command)} failed")
    return program


def run(program: Path, scenario: str) -> Run:
    """Runs one program once."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([program, scenario], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        # Set the exit code here, because Popen cannot wait for a process that `wait4` has reaped.
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise BenchError(f"{program.name} {scenario} ended with {process.returncode}")
        out.seek(0)
        return Run(usage.ru_utime + usage.ru_stime, json.loads(out.read()))


def progress(text: str) -> None:
    """Prints the progress on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def in_turn(scenarios: Iterable[Scenario]) -> list[list[Scenario]]:
    """Groups scenarios whose runs alternate: PAIR in one group, each other scenario in its own."""
    listed = list(scenarios)
    pair = [s for s in listed if s.name in PAIR]
    return [*([s] for s in listed if s not in pair), *([pair] if pair else [])]


def measure(programs: dict[str, Path], scenarios: Iterable[Scenario], repeat: int) -> list[Cost]:
    """Runs every scenario on every simulator. The runs of both simulators, and of J and K, alternate."""
    costs = []
    for together in in_turn(scenarios):
        runs: dict[tuple[Scenario, str], list[Run]] = {}
        for _ in range(max(repeat, PAIRS) if len(together) > 1 < repeat else repeat):
            for scenario in together:
                for side, program in programs.items():
                    if scenario.ns3 or side != "ns-3":
                        progress(f"{scenario.name} on {side} ...")
                        runs.setdefault((scenario, side), []).append(run(program, scenario.name))
        costs += [Cost(scenario, side, results) for (scenario, side), results in runs.items()]
    progress("")
    return costs


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A padded Markdown table. Its first two columns are left-aligned, and the rest are right-aligned."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [
            c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    lines = [line(row) for row in cells]
    rule = "|" + "|".join("-" * (w + 2) if i < 2 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def ratio(theirs: Cost | None, ours: Cost) -> str:
    """CPU time of ns-3 divided by that of Narrows.

    Both times are per delivered packet, because the flows of scenario D have random sizes.
    """
    if theirs is None:
        return ""
    return f"{theirs.ns_per('delivered_packets') / ours.ns_per('delivered_packets'):.0f}"


def speed_table(costs: Sequence[Cost]) -> str:
    """CPU time and memory of the speed scenarios."""
    header = ["", "", "CPU s", "±", "ns/packet-hop", "ns/delivered", "Mevents/s", "events/hop", "peak MiB"]
    header.append("ns-3/ours")
    rows = []
    for cost in costs:
        ours = cost.side != "ns-3"
        other = next((c for c in costs if c.scenario == cost.scenario and c.side == "ns-3"), None)
        rows.append(
            [
                cost.scenario.name if ours else "",
                cost.side,
                f"{cost.cpu:.3f}" if ours else f"{cost.cpu:.2f}",
                f"{100 * cost.spread / 2:.0f} %" if len(cost.runs) > 1 else "-",
                f"{cost.ns_per('packet_hops'):,.0f}",
                f"{cost.ns_per('delivered_packets'):,.0f}",
                f"{cost.count('events') / cost.cpu / 1e6:.2f}",
                f"{cost.count('events') / max(cost.count('packet_hops'), 1):.2f}",
                f"{cost.peak_bytes / 2**20:.1f}",
                ratio(other, cost) if ours else "",
            ]
        )
    return table(header, rows)


def fidelity_table(costs: Sequence[Cost]) -> str:
    """Counts of the simulated traffic, which should be nearly the same in both simulators."""
    header = ["", "", "goodput Mbit/s", "packets delivered", "packet-hops", "flows", "drops"]
    rows = [
        [
            cost.scenario.name if cost.side != "ns-3" else "",
            cost.side,
            f"{8e-6 * cost.count('delivered_bytes') / cost.scenario.seconds:,.2f}",
            *(f"{cost.count(name):,}" for name in ("delivered_packets", "packet_hops", "flows", "drops")),
        ]
        for cost in costs
    ]
    return table(header, rows)


def milliseconds(cost: Cost, group: str) -> float:
    """Mean completion time of all finished flows ("") or of a group ("short_", "long_"), ms."""
    flows = cost.count(group.rstrip("_") or "finished")
    return 1e-6 * cost.count(f"{group}fct_ns") / flows if flows else float("nan")


def completion_table(costs: Sequence[Cost]) -> str:
    """Number of finished flows and their completion times."""
    header = ["", "", "flows", "finished", "bytes", "mean FCT ms", "<= 30 packets", ">= 100 packets"]
    rows = [
        [
            cost.scenario.name if cost.side != "ns-3" else "",
            cost.side,
            *(f"{cost.count(name):,}" for name in ("begun", "finished", "finished_bytes")),
            *(f"{milliseconds(cost, group):.2f}" for group in ("", "short_", "long_")),
        ]
        for cost in costs
    ]
    return table(header, rows)


def same_flows(costs: Sequence[Cost]) -> None:
    """Raises an error unless both simulators had the same flows and finished all of them."""
    for cost in costs:
        if not cost.count("begun") or cost.count("finished") != cost.count("begun"):
            raise BenchError(f"{cost.scenario.name} on {cost.side}: not all flows finished")
    for name in ("workload", "finished", "finished_bytes"):
        if len({cost.count(name) for cost in costs}) > 1:
            raise BenchError(f"the simulators have different flows: {name} differs")


def memory_lines(costs: Sequence[Cost]) -> list[str]:
    """Memory per idle flow and per packet in flight. Subtracts the memory of the smallest other run."""
    peak = {(c.scenario.name, c.side): c.peak_bytes for c in costs}
    lines = []
    for side in dict.fromkeys(c.side for c in costs):
        base = min((p for (name, s), p in peak.items() if s == side and name not in "FG"), default=None)
        for name, what, n in (("F", "idle flow", FLOWS_IN_F), ("G", "packet in flight", PACKETS_IN_G)):
            if base is not None and (name, side) in peak:
                lines.append(f"- {side}: {(peak[name, side] - base) / n:,.0f} bytes for each {what} ({name})")
    return lines


def controller_lines(bench: str) -> list[str]:
    """The output of a benchmark that measures only controllers."""
    program = cargo_bench("narrows-control", bench)
    printed = subprocess.run([program, "--bench"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return ["```", *printed.rstrip().splitlines(), "```"]


def first_line(*command: str) -> str:
    """The first line of a command's output, or a message that the command is missing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return f"no {command[0]}"


def machine(*versions: str) -> str:
    """One line that describes the machine, with the versions of rustc and of the other programs."""
    model = "unknown CPU"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    tools = ", ".join([first_line("rustc", "--version"), *versions])
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {model}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, "
        f"{platform.system()} {platform.release().partition('-')[0]}; {tools}"
    )


def circumstances(repeat: int, costs: Sequence[Cost]) -> str:
    """Machine, date and number of repetitions of the measurement."""
    runs = " and ".join(
        f"{n} run{'s' if n > 1 else ''}" for n in sorted({len(c.runs) for c in costs} or {repeat})
    )
    ns3 = first_line("g++", "--version"), "ns-3 " + first_line("pkg-config", "--modversion", "ns3-core")
    if runs == "1 run":
        return f"{machine(*ns3)}. One run each, so the spread is not known."
    return f"{machine(*ns3)}. Medians of {runs}; ± is half the spread."


def tables(costs: Sequence[Cost]) -> list[str]:
    """The tables and their headings. Each row has one scenario on one simulator."""
    speed = [c for c in costs if c.scenario.speed]
    completing = [c for c in costs if c.scenario.completions]
    parts = []
    if speed:
        parts += [speed_table(speed), "Simulated traffic:", fidelity_table(speed)]
    if completing:
        same_flows(completing)
        parts += ["Completion times:", completion_table(completing)]
    return parts


def report(costs: Sequence[Cost], stamp: str, missing: str | None, blocks: dict[str, str]) -> str:
    """Everything measured, as Markdown."""
    parts = [stamp]
    if missing:
        parts.append(f"ns-3 was not run: {missing}.")
    parts += tables(costs)
    parts += pacing_line(costs)
    if memory := memory_lines(costs):
        parts += ["Memory:", "\n".join(memory)]
    for title, block in blocks.items():
        parts += [title, block]
    return "\n\n".join(parts)


def cells_of(lines: Sequence[str]) -> list[list[str]]:
    """The cells of a Markdown table without its separator line."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if set("".join(row)) - set("-:")]


def by_scenario(rows: Iterable[list[str]]) -> dict[str, list[list[str]]]:
    """Groups rows by scenario. Only the first row of a scenario has its name."""
    blocks: dict[str, list[list[str]]] = {}
    name = ""
    for row in rows:
        name = row[0] or name
        blocks.setdefault(name, []).append(row)
    return blocks


def merged(old: str, new: str) -> str:
    """Replaces rows of the table `old` by the rows of `new` for the same scenarios."""
    header, *rows = cells_of(old.splitlines())
    blocks = by_scenario(rows) | by_scenario(cells_of(new.splitlines())[1:])
    return table(header, [row for name in sorted(blocks) for row in blocks[name]])


def pacing_line(costs: Sequence[Cost]) -> list[str]:
    """The CPU time of BBR v3 compared with Reno, if both ran."""
    pair = [c for name in PAIR for c in costs if c.scenario.name == name]
    if len(pair) < len(PAIR):
        return []
    reno, bbr3 = ([r.cpu / r.counts["delivered_packets"] for r in c.runs] for c in pair)
    ratios = sorted(b / a for a, b in zip(reno, bbr3, strict=True))
    least = min(bbr3) / min(reno)
    return [
        f"{PACING}, in turn: median {statistics.median(ratios):.2f} of {len(ratios)} pairs, "
        f"from {ratios[0]:.2f} to {ratios[-1]:.2f}; the fastest run of each {least:.2f} "
        "(the aim is at most 1.5)."
    ]


def blocks_of(benches: Sequence[str]) -> dict[str, str]:
    """The output of the controller benchmarks, by heading."""
    return {title: "\n".join(controller_lines(b)) for b, title in CONTROLLER_BENCHES.items() if b in benches}


def updated(measured: str, costs: Sequence[Cost], blocks: dict[str, str], stamp: str) -> str:
    """Updates the measured section with new rows and blocks, and adds a line with the date."""
    paragraphs = measured.strip().split("\n\n")
    heading = ""
    for part in tables(costs):
        if not part.startswith("|"):
            heading = part
            continue
        columns = cells_of(part.splitlines())[0]
        same = [
            i for i, p in enumerate(paragraphs) if p[:1] == "|" and cells_of(p.splitlines())[0] == columns
        ]
        if same:
            paragraphs[same[0]] = merged(paragraphs[same[0]], part)
        else:
            last = max(i for i, p in enumerate(paragraphs) if p.startswith("|"))
            paragraphs[last + 1 : last + 1] = [heading, part]
    if pacing := pacing_line(costs):
        paragraphs = [p for p in paragraphs if not p.startswith(PACING)]
        paragraphs.insert(paragraphs.index("Memory:"), pacing[0])
    for title, block in blocks.items():
        if title in paragraphs:
            paragraphs[paragraphs.index(title) + 1] = block
        else:
            paragraphs += [title, block]
    names = [b for b, title in CONTROLLER_BENCHES.items() if title in blocks]
    mark = f"{', '.join([*dict.fromkeys(c.scenario.name for c in costs), *names])} measured separately: "
    paragraphs = [p for p in paragraphs if not p.startswith(mark)]
    paragraphs.insert(1, mark + stamp)
    return "\n\n".join(paragraphs)


def write(change: Callable[[str], str]) -> None:
    """Replaces the measured section of the document with the result of `change`."""
    document = DOCUMENT.read_text(encoding="utf-8")
    head, begin, rest = document.partition(BEGIN)
    measured, end, tail = rest.partition(END)
    if not (begin and end):
        raise BenchError(f"{DOCUMENT} has no {BEGIN} and {END}")
    DOCUMENT.write_text(f"{head}{begin}\n\n{change(measured)}\n\n{end}{tail}", encoding="utf-8")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--only", metavar="A,ack", help="scenarios and benches of controllers to run (default: all)"
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one run of each")
    parser.add_argument("--no-ns3", action="store_true", help="leave ns-3 out")
    parser.add_argument(
        "--write", action="store_true", help="put the result into docs/explanation/performance.md"
    )
    options = parser.parse_args(arguments)
    known = {s.name for s in SCENARIOS} | set(CONTROLLER_BENCHES)
    options.names = set(options.only.split(",")) if options.only else known
    if unknown := options.names - known:
        parser.error(f"--only: no {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    options.scenarios = [s for s in SCENARIOS if s.name in options.names]
    options.benches = [b for b in CONTROLLER_BENCHES if b in options.names]
    if options.repeat < 1:
        parser.error("--repeat: at least 1")
    if (
        options.write
        and options.only
        and (
            (options.no_ns3 and any(s.ns3 for s in options.scenarios))
            or any(not s.speed for s in options.scenarios)
        )
    ):
        parser.error("--write with --only needs scenarios of the speed table, and ns-3 if it runs them")
    return options


def main(arguments: Sequence[str]) -> int:
    """Builds and runs the benchmarks and prints the results."""
    options = parse(arguments)
    repeat = 1 if options.quick else options.repeat
    missing = "left out by --no-ns3" if options.no_ns3 else None
    with tempfile.TemporaryDirectory() as folder:
        try:
            with_ns3 = any(s.ns3 for s in options.scenarios)
            programs = {"narrows": cargo_bench("narrows-sim", "scenarios")} if options.scenarios else {}
            if with_ns3 and not missing:
                try:
                    programs["ns-3"] = build_ns3(Path(folder))
                except BenchError as e:
                    missing = str(e)
            costs = measure(programs, options.scenarios, repeat)
            blocks = blocks_of(options.benches)
            stamp = circumstances(repeat, costs) if costs else f"{machine()}. {ONE_RUN_OF_A_BENCH}"
            text = report(costs, stamp, missing if with_ns3 else None, blocks)
            print("\n".join(f"{s.name}: {s.what}" for s in options.scenarios), end="\n\n")
            print(text)
            if options.write and options.only:
                if with_ns3 and missing:
                    raise BenchError(f"not written, because ns-3 was not run: {missing}")
                write(lambda measured: updated(measured, costs, blocks, stamp))
            elif options.write:
                write(lambda _: text)
        except BenchError as e:
            print(f"bench: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
