"""Runs the quick BRF study on one thread and on two threads, and compares the tables byte for byte."""

import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path

# Only these files contain wall times, which differ between runs.
NOT_COMPARED = {"timing.csv"}


def start_study(out: Path, jobs: int) -> subprocess.Popen[bytes]:
    """Starts the quick study, which writes its results to a folder."""
    narrows = Path(sys.executable).with_name("narrows")
    command = [narrows, "study", "brf", "--quick", "--no-figures", "--jobs", str(jobs), "--out", out]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def tables(folder: Path) -> list[Path]:
    """The result files of a study, relative to its folder."""
    found = (p for kind in ("*.parquet", "*.csv", "*.json") for p in folder.rglob(kind))
    return sorted(p.relative_to(folder) for p in found if p.name not in NOT_COMPARED)


def main() -> int:
    """Compares two runs. Returns 0 if they are identical."""
    with tempfile.TemporaryDirectory() as name:
        one, two = Path(name, "one-thread"), Path(name, "threads")
        # The two studies run at the same time, because the study on one thread leaves all other cores idle.
        studies = [start_study(one, jobs=1), start_study(two, jobs=2)]
        codes = [study.wait() for study in studies]
        if any(codes):
            print("determinism: the study failed")
            return 1
        files = tables(one)
        if not files or files != tables(two):
            print("determinism: the two runs wrote different sets of files")
            return 1
        _, different, missing = filecmp.cmpfiles(one, two, [str(f) for f in files], shallow=False)
        for file in different + missing:
            print(f"determinism: {file} differs between two runs")
        if different or missing:
            return 1
        print(f"determinism: {len(files)} files are identical on one thread and on two")
        return 0


if __name__ == "__main__":
    sys.exit(main())
