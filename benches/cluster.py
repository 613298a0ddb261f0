"""Runs a sweep on a Ray cluster while a node and the driver are killed, and compares it with threads.

    python benches/cluster.py               # 5,000 runs
    python benches/cluster.py --runs 500    # fewer

The cluster has two nodes on this machine, each with half of the cores. The first sweep runs in threads, and
the second on the cluster. During the third sweep, the script kills a node and adds another node. Then the
script kills the driver, and starts a new driver with the option `--reuse`. All three sweeps must give
identical tables. The script needs the extra `ray`.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python" / "executors"))
sys.path.insert(0, str(ROOT / "python"))

from cluster import Cluster  # noqa: E402
from narrows.results import exchange, segments  # noqa: E402

SCENARIO = """
duration = "5s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "30ms"
queue = "1bdp"
[[flows]]
cc = "cubic"
[[flows]]
cc = "bbr"
"""


def command(folder: Path, name: str, runs: int, *options: str) -> list[str]:
    """The command that runs a sweep and writes to the folder `name`."""
    words = ["run", "my.toml", "--seeds", str(runs), "--out", str(folder / name), "--formats", "parquet"]
    return [sys.executable, "-m", "narrows", *words, *options]


def timed(folder: Path, name: str, runs: int, env: dict[str, str], *options: str) -> float:
    """Run a sweep, and return its wall time in seconds."""
    begun = time.monotonic()
    subprocess.run(
        command(folder, name, runs, *options), cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL
    )
    return time.monotonic() - begun


def done(folder: Path) -> int:
    """The number of runs that a sweep in progress has written."""
    return segments.count(folder / exchange.PART)


def wait_for(folder: Path, runs: int, driver: subprocess.Popen[bytes]) -> None:
    """Wait until a sweep in progress has written this number of runs."""
    while done(folder) < runs:
        if driver.poll() is not None:
            raise SystemExit(f"{folder}: the sweep ended after {done(folder)} runs, expected {runs} first")
        time.sleep(0.2)


def disturbed(cluster: Cluster, folder: Path, runs: int, options: tuple[str, ...]) -> float:
    """Run a sweep that loses a node and its driver, and return its wall time in seconds."""
    begun, out = time.monotonic(), folder / "disturbed"
    driver = subprocess.Popen(
        command(folder, out.name, runs, *options), cwd=folder, env=cluster.env, stdout=subprocess.DEVNULL
    )
    wait_for(out, runs // 4, driver)
    print(f"{done(out)} runs: kill node b, add node c", flush=True)
    cluster.kill("b")
    cluster.add("c", cpus())
    wait_for(out, runs // 2, driver)
    print(f"{done(out)} runs: kill the driver", flush=True)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    kept = done(out)
    timed(folder, out.name, runs, cluster.env, *options, "--reuse")
    print(f"{kept} runs were kept by the second driver", flush=True)
    return time.monotonic() - begun


def cpus() -> int:
    """CPUs of a node."""
    return max(1, (os.cpu_count() or 1) // 2)


def tables(folder: Path) -> dict[str, bytes]:
    """The content of all files of a sweep except `timing.csv`, which depends on the machine."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "timing.csv"}


def main() -> None:
    """Runs the three sweeps, and compares their tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5000, metavar="N", help="Runs of a sweep (default: 5000)")
    runs = parser.parse_args().runs
    folder = Path(tempfile.mkdtemp(prefix="narrows-cluster-"))
    (folder / "my.toml").write_text(SCENARIO)
    with Cluster() as cluster:
        for name in ("a", "b"):
            cluster.add(name, cpus())
        options = ("--executor", f"ray:{cluster.address}")
        seconds = {
            "threads": timed(folder, "threads", runs, cluster.env),
            "Ray": timed(folder, "ray", runs, cluster.env, *options),
        }
        for name, each in seconds.items():
            print(f"{name}: {each:.1f} s, {runs / each:.1f} runs/s", flush=True)
        print(f"Ray is {seconds['threads'] / seconds['Ray']:.2f} times as fast as threads", flush=True)
        print(f"disturbed: {disturbed(cluster, folder, runs, options):.1f} s", flush=True)
    expected = tables(folder / "threads")
    for name in ("ray", "disturbed"):
        if tables(folder / name) != expected:
            raise SystemExit(f"{folder / name}: found other tables than in {folder / 'threads'}")
    print(f"all tables are equal ({len(expected)} files)")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
