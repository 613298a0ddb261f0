"""The scenarios of `suite/`, run with an engine in one process."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from narrows.diff import Side, read_side

SUITE = Path(__file__).with_name("suite")
SEEDS = 10
"""Number of seeds of each scenario."""
CONFIDENCE = 0.999
"""Confidence level. In 1000 comparisons of unchanged engines, at most one false alarm is expected."""
DONE = "done"
"""Name of the file that marks a folder of complete results."""

_RUN = """
import sys
from collections.abc import Mapping
from pathlib import Path
from narrows import sweep
from narrows.scenario.load import load
suite, seeds, done = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for first, out in zip(map(int, sys.argv[4::2]), map(Path, sys.argv[5::2]), strict=True):
    for path in sorted(suite.glob("*.toml")):
        sweep.run(load(path, {"seed": first}), seeds=seeds, out=out / path.stem, formats=("parquet",))
    (out / done).touch()
"""


def run(package: Path, folders: Mapping[int, Path]) -> None:
    """Run the suite with the engine in a folder. Folders with complete results are skipped.

    Args:
        package: folder from which `narrows` is imported.
        folders: for the first seed of each block, the folder of the results.
    """
    words: list[str] = []
    for first, out in folders.items():
        if not (out / DONE).exists():
            shutil.rmtree(out, ignore_errors=True)
            words += [str(first), str(out)]
    if words:
        subprocess.run(
            [sys.executable, "-P", "-c", _RUN, str(SUITE), str(SEEDS), DONE, *words],
            env={**os.environ, "PYTHONPATH": str(package)},
            check=True,
        )


def digest() -> str:
    """A digest of the scenarios and of the number of seeds."""
    content = [f"{SEEDS}".encode(), *(path.read_bytes() for path in sorted(SUITE.glob("*.toml")))]
    return hashlib.sha256(b"\n".join(content)).hexdigest()[:8]


def read(out: Path, label: str) -> Side:
    """The results of a run of the suite."""
    return read_side(out, label)
