"""Measures sweeps of the README's scenario: runs per second in Rust, in threads and on a Ray cluster.

    python benches/throughput.py                         # 10 and 1,000 seeds
    python benches/throughput.py --seeds 10,1000,100000

"Rust" simulates all seeds on all cores and discards the results. It is the benchmark
crates/narrows-sim/benches/seeds.rs, which needs cargo. "Threads" and "Ray" are complete calls of
`narrows run`, including start, tables and merge. The Ray cluster has one node with all cores of this machine,
and needs the extra `ray`. A measurement is left out with a message if its programs or packages are missing.
The overhead of a run is (wall time x cores - time of the simulations) / number of runs.
"""

import argparse
import csv
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python" / "executors")]

from cluster import Cluster  # noqa: E402
from narrows import sweep  # noqa: E402
from narrows.scenario.load import expand, load  # noqa: E402

CORES = os.cpu_count() or 1


def scenario() -> str:
    """The scenario of the README."""
    found = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def build() -> Path | None:
    """Builds the Rust benchmark, and returns its path; None without cargo."""
    if shutil.which("cargo") is None:
        print("Rust is left out: cargo is missing", file=sys.stderr)
        return None
    command = ["cargo", "bench", "--locked", "-p", "narrows-sim", "--bench", "seeds", "--no-run"]
    made = subprocess.run(
        [*command, "--message-format", "json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    programs = [json.loads(line).get("executable") for line in made.stdout.splitlines()]
    return Path(next(program for program in programs if program))


def timed(command: list[str], folder: Path, env: dict[str, str]) -> float:
    """Run a command, and return its wall time in seconds."""
    begun = time.monotonic()
    subprocess.run(
        command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.monotonic() - begun


def overhead_ms(out: Path, wall_s: float, runs: int) -> float:
    """Wall time of all cores together, without the time of the simulations, in ms per run."""
    with (out / "timing.csv").open(encoding="utf-8", newline="") as file:
        simulated = sum(float(row["wall_s"]) for row in csv.DictReader(file))
    return (wall_s * CORES - simulated) / runs * 1e3


def measure(seeds: int, folder: Path, loop: Path | None, cluster: Cluster | None) -> None:
    """Measure each way to run the sweep, and print a line for each."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    rates: dict[str, float] = {}
    if loop is not None:
        rates["Rust"] = seeds / timed([str(loop), "plan.json", str(seeds), str(CORES)], folder, env)
        print(f"{seeds} seeds, Rust: {rates['Rust']:.1f} runs/s", flush=True)
    sides = {"threads": (env, [])}
    if cluster is not None:
        sides["Ray"] = (cluster.env, ["--executor", f"ray:{cluster.address}"])
    for side, (environment, options) in sides.items():
        out = folder / f"{side}-{seeds}"
        words = ["run", "my.toml", "--seeds", str(seeds), "--out", str(out), "--formats", "parquet", *options]
        wall = timed([sys.executable, "-m", "narrows", *words], folder, environment)
        rates[side] = seeds / wall
        beside = overhead_ms(out, wall, seeds)
        print(
            f"{seeds} seeds, {side}: {rates[side]:.1f} runs/s, {beside:.1f} ms in addition to each run",
            flush=True,
        )
        shutil.rmtree(out)
    for above, below in (("threads", "Rust"), ("Ray", "threads")):
        if above in rates and below in rates:
            print(f"{seeds} seeds, {above} / {below}: {rates[above] / rates[below]:.2f}", flush=True)


def main() -> None:
    """Measure for each number of seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="10,1000", metavar="N,...", help="Seeds (default: 10,1000)")
    counts = [int(word) for word in parser.parse_args().seeds.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="narrows-throughput-"))
    (folder / "my.toml").write_text(scenario(), encoding="utf-8")
    first = expand(load(folder / "my.toml"))[0].scenario
    (folder / "plan.json").write_text(json.dumps(sweep.Resolver(sweep.simulator())(first)), encoding="utf-8")
    loop = build()
    if importlib.util.find_spec("ray") is None:
        print("Ray is left out: the extra ray is missing", file=sys.stderr)
        for seeds in counts:
            measure(seeds, folder, loop, None)
    else:
        with Cluster() as cluster:
            cluster.add("node", CORES)
            for seeds in counts:
                measure(seeds, folder, loop, cluster)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
