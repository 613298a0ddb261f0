"""Runs the same cells in ns-3: builds `cell.cc` with the installed libraries and runs it."""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows.errors import NarrowsError, one_line
from narrows.units import parse_duration
from narrows.validate import shape
from narrows.validate.grid import Cell
from narrows.validate.measures import Side, weighted

_SOURCE = Path(__file__).with_name("cell.cc")
_SHARED = Path(__file__).with_name("network.h")
_HEADERS = Path("/usr/include/ns3/core-module.h")
_MODULES = ("core", "network", "internet", "point-to-point", "applications", "nix-vector-routing")
_SAMPLE_S = 0.05
"""Sampling interval, kSample of `cell.cc`."""
_SERIES = ("windows", "srtts_s", "bytes")
"""Keys of a flow's samples: the window in segments, the smoothed RTT in seconds, and the bytes that were
delivered since the previous sample."""
_NEEDED = {"name", "goodput_bps", "sent", "resent", *_SERIES}
"""Columns that the program's output must have for each flow."""
MOST_SEEDS = 3
"""Largest number of runs of a cell. A run takes 4 to 12 s at 100 Mbit/s."""
_RUNS = "runs"
"""Folder next to the program. It contains a file with the output of each run."""
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT)
_MOST_SECONDS = 600
"""Time limit of a run."""


def build(folder: Path) -> Path:
    """The program, compiled if it is older than its sources. Each version of ns-3 has its own program.

    Raises:
        NarrowsError: if the compiler or the libraries are missing.
    """
    if shutil.which("g++") is None or not _HEADERS.is_file():
        raise NarrowsError("ns-3 needs g++ and libns3-dev (Debian: apt-get install g++ libns3-dev)")
    folder /= version().replace(" ", "-")
    program = folder / "cell"
    newest = max(source.stat().st_mtime for source in (_SOURCE, _SHARED))
    if program.is_file() and program.stat().st_mtime > newest:
        return program
    folder.mkdir(parents=True, exist_ok=True)
    # Build under another name, because a killed linker leaves an incomplete program that is newer than its
    # sources.
    aside = folder / "cell.part"
    # Debian's .pc files of ns-3 3.37 contain a stray semicolon, so the flags are listed here.
    command = ["g++", "-std=c++17", "-O2", "-DNDEBUG", str(_SOURCE), "-o", str(aside)]
    done = subprocess.run(
        command + [f"-lns3-{module}" for module in _MODULES], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NarrowsError(f"ns-3's cell.cc was not compiled: {one_line(done.stderr)}")
    shutil.rmtree(folder / _RUNS, ignore_errors=True)
    aside.replace(program)
    return program


def _flows(text: str) -> list[dict[str, Any]] | None:
    """The flows in the output of a run, or None if the output is incomplete."""
    try:
        flows: list[dict[str, Any]] = json.loads(text)
        whole = all(flow.keys() >= _NEEDED for flow in flows) and len(flows) > 0
    except (ValueError, AttributeError, TypeError):
        return None
    return flows if whole else None


def version() -> str:
    """Version of the installed ns-3 libraries."""
    done = subprocess.run(
        ["pkg-config", "--modversion", "ns3-core"], capture_output=True, text=True, check=False
    )
    return f"ns-3 {done.stdout.strip()}" if done.returncode == 0 else "ns-3"


def sides(
    program: Path, cell: Cell, algorithm: str, duration: str, warmup_s: float, seeds: int, jobs: int
) -> dict[str, Side]:
    """Flows by name, of earlier and new runs. Runs in which ns-3 crashed are left out.

    Raises:
        NarrowsError: if a run fails for another reason.
    """
    said = program.parent / _RUNS
    said.mkdir(exist_ok=True)

    def run(seed: int) -> list[dict[str, Any]]:
        """The flows of a run. Empty if ns-3 crashed, as ns-3 3.37 sometimes does with BBR."""
        options = {
            "algorithm": algorithm,
            "rate": cell.rate,
            "rtt": cell.rtt,
            "queue": cell.queue,
            "loss": cell.loss,
            "flows": cell.flows,
            "duration": parse_duration(duration) / 1e9,
            "warmup": warmup_s,
            "seed": seed,
        }
        kept = said / f"{algorithm}-{cell.name}-{duration}-{warmup_s:g}s-{seed}.json"
        if kept.is_file() and (before := _flows(kept.read_text("utf-8", "replace"))) is not None:
            return before
        command = [str(program), *(f"--{key}={value}" for key, value in options.items())]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise NarrowsError(f"{algorithm}/{cell.name}: ns-3 took more than {_MOST_SECONDS} s") from None
        if done.returncode in _CRASHES:
            return []
        if done.returncode:
            raise NarrowsError(f"{algorithm}/{cell.name}: ns-3: {one_line(done.stderr) or done.returncode}")
        flows = _flows(done.stdout)
        if flows is None:
            raise NarrowsError(
                f"{algorithm}/{cell.name}: ns-3: found no figures: {one_line(done.stdout[:80].strip())!r}"
            )
        whole = kept.with_suffix(".part")
        whole.write_text(done.stdout, encoding="utf-8")
        whole.replace(kept)
        return flows

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        runs = list(pool.map(run, range(1, seeds + 1)))
    found: dict[str, Side] = {}
    for flow in (flow for flows in runs for flow in flows):
        windows, srtts, delivered = (np.asarray(flow[key], np.float64) for key in _SERIES)
        t: NDArray[np.float64] = np.arange(1, len(windows) + 1, dtype=np.float64) * _SAMPLE_S + warmup_s
        side = found.setdefault(flow["name"], Side({}))
        side.windows.append((t, windows))
        # Until its first sample, ns-3's estimator reports an RTT of 1 s. No data has been delivered by then,
        # so this RTT has no weight.
        mean, p95 = weighted(srtts, delivered)
        figures = {
            "goodput_bps": flow["goodput_bps"],
            "rtt_mean_s": mean,
            "rtt_p95_s": p95,
            "resent": flow["resent"] / flow["sent"] if flow["sent"] else math.nan,
            "cwnd_mean": float(windows.mean()) if len(windows) else math.nan,
            "period_s": shape.period(t, windows),
        }
        for figure, value in figures.items():
            side.figures.setdefault(figure, []).append(value)
    return found
