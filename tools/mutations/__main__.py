"""Plants changes in congestion controllers and counts how many `narrows diff` finds.

    python tools/mutations check                  # check that each mutation can be planted in the sources
    python tools/mutations plant                  # build and run all mutations, print the table
    python tools/mutations plant cubic-beta       # these mutations only
    python tools/mutations unchanged --times 200  # runs of the unchanged engine with other seeds

The changes are in `mutations.toml` and the scenarios in `suite/`. `plant` compares each changed engine with
the engine of the current commit in two ways. First, the engines run with different seeds, and a statistical
test compares their results. Second, they run with the same seeds. The runs are then paired, and also compared
bit by bit. `unchanged` compares the unchanged engine with itself on different seeds, and counts false alarms.
Results are kept in `target/mutations`, so a repeated call continues where an earlier call stopped.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from narrows import markdown
from narrows.diff import Diff, Outcome, Side, diff, engines
from narrows.errors import NarrowsError
from planted import CONTROLLERS, Mutation, apply, read_all
from suite import CONFIDENCE, SEEDS, SUITE, digest, read, run

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "target" / "mutations"
CARGO = Path(os.environ.get("CARGO_TARGET_DIR", FOLDER / "cargo"))
os.environ.setdefault("CARGO_INCREMENTAL", "1")
CLEAN = ".commit"
"""File in the exported tree that has the tree's commit. It is missing while the tree has a mutation."""


def say(line: str) -> None:
    """Print a line about the progress."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def changed(tree: Path, mutation: Mutation) -> Iterator[None]:
    """Plants a mutation in the tree, and removes it at the end of the block."""
    path = tree / CONTROLLERS / mutation.file
    original = path.read_text(encoding="utf-8")
    clean = tree / CLEAN
    commit = clean.read_text()
    # If this file is missing, the next call exports the tree again. So if this call is killed, its mutation
    # does not stay in the tree.
    clean.unlink()
    path.write_text(apply(original, mutation), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(original, encoding="utf-8")
        clean.write_text(commit)


def engine_of(mutation: Mutation | None, commit: str) -> Path:
    """Builds an engine unless it exists already. Returns its Python package."""
    # The engine and its Python code depend only on the sources in crates/ and python/.
    sources = "-".join(engines.tree(ROOT, commit, part)[:12] for part in ("crates", "python"))
    package = FOLDER / sources / (mutation.digest if mutation is not None else "unchanged") / "python"
    module = package / "narrows" / engines.MODULE
    if module.is_file():
        return package
    tree = FOLDER / "tree"
    clean = tree / CLEAN
    if not clean.is_file() or clean.read_text() != commit:
        shutil.rmtree(tree, ignore_errors=True)
        engines.export(ROOT, commit, tree)
        clean.write_text(commit)
    shutil.rmtree(package.parent, ignore_errors=True)
    shutil.copytree(tree / "python", package)
    if mutation is None:
        engines.compile_module(tree, CARGO, module)
    else:
        with changed(tree, mutation):
            engines.compile_module(tree, CARGO, module)
    return package


def results_of(mutation: Mutation | None, commit: str, blocks: Sequence[int]) -> list[Side]:
    """The suite's results for blocks of seeds, numbered from 0. Runs the blocks that have no results yet."""
    package = engine_of(mutation, commit)
    folders = {1 + block * SEEDS: package.parent / f"{digest()}-{block}" for block in blocks}
    run(package, folders)
    label = mutation.id if mutation is not None else "unchanged"
    return [read(out, label) for out in folders.values()]


def plant(names: Sequence[str], commit: str) -> str:
    """A table with a row for each mutation: the figure that reveals it, and how the runs differ."""
    known = read_all()
    if wrong := set(names).difference(item.id for item in known):
        raise NarrowsError(f"found {min(wrong)!r}, expected the name of a mutation in mutations.toml")
    chosen = [item for item in known if not names or item.id in names]
    same, others = results_of(None, commit, (0, 1))
    rows, found = [], 0
    for mutation in chosen:
        say(f"{mutation.id}: {mutation.why}")
        mutated = results_of(mutation, commit, (0, 1))
        paired, other = (diff(same, side, confidence=CONFIDENCE) for side in mutated)
        found += is_found(other)
        rows.append([f"`{mutation.id}`", mutation.why, evidence(other), evidence(paired), unequal(paired)])
    heads = ["mutation", "change", "other seeds", "same seeds", "runs that differ"]
    unchanged = "found" if is_found(diff(same, others, confidence=CONFIDENCE)) else "not found"
    text = markdown.table(heads, rows, "llllr")
    return f"{text}\n\n{found} of {len(rows)} found with other seeds. The unchanged engine: {unchanged}.\n"


def is_found(result: Diff) -> bool:
    """Whether a change was found."""
    return result.is_changed


def evidence(result: Diff) -> str:
    """The number of changed figures and the one with the smallest p-value; a dash if no figure changed."""
    found = [
        (item.p, part.name, item)
        for part in result.parts
        for item in part.compared
        if item.outcome is Outcome.CHANGED
    ]
    if not found:
        return "found: a figure is undefined" if result.is_changed else "-"
    p, scenario, item = min(found, key=lambda entry: entry[:2])
    size = "" if math.isnan(item.relative) else f" {100 * item.relative:+.2g} %"
    place = f"{scenario}, {'' if item.series.entity == 'flow' else 'link '}{item.series.name}"
    return f"{len(found)} figures; {place}, {item.series.heading.short}{size}, p {p:.0e}"


def unequal(result: Diff) -> str:
    """How many of the pairs of runs with equal seeds have different results."""
    pairs = sum(point.pairs for point in result.points)
    return f"{pairs - sum(point.identical for point in result.points)} of {pairs}"


def unchanged(times: int, commit: str) -> str:
    """Compares `times` pairs of seed blocks of the unchanged engine, and counts false alarms."""
    alarms, smallest = [], []
    blocks = math.ceil((1 + math.sqrt(1 + 8 * times)) / 2)
    sides = results_of(None, commit, range(blocks))
    pairs = itertools.islice(itertools.combinations(range(blocks), 2), times)
    for number, (before, now) in enumerate(pairs, 1):
        result = diff(sides[before], sides[now], confidence=CONFIDENCE)
        smallest.append(min(item.p for item in result.compared if not math.isnan(item.p)))
        if is_found(result):
            alarms.append(f"blocks {before} and {now}: {evidence(result)}")
        if number % 10 == 0:
            say(f"{number} of {times}, {len(alarms)} alarms, smallest p {min(smallest):.2g}")
    below = ", ".join(
        f"{sum(p < level for p in smallest)} below {level:g}" for level in (0.2, 0.1, 0.05, 0.01, 0.001)
    )
    counted = (
        f"{len(alarms)} alarms in {times} comparisons of {blocks} blocks at the level {1 - CONFIDENCE:.2g}"
    )
    lines = [counted, *alarms]
    return "\n".join([*lines, f"smallest adjusted p-value of each comparison: {below}"]) + "\n"


def main() -> None:
    """Parse the command line and do the work."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="check that each mutation can be planted in the sources")
    commands.add_parser("build", help="build the engines of all mutations")
    planting = commands.add_parser("plant", help="build and run mutations")
    planting.add_argument("names", nargs="*", metavar="MUTATION", help="names (default: all)")
    control = commands.add_parser("unchanged", help="count false alarms")
    control.add_argument("--times", type=int, default=200, help="number of comparisons (default: 200)")
    asked = parser.parse_args()
    for mutation in read_all():
        apply((ROOT / CONTROLLERS / mutation.file).read_text(encoding="utf-8"), mutation)
    if asked.command == "check":
        return
    commit = engines.find_commit(ROOT, "HEAD")
    started = time.monotonic()
    if asked.command == "build":
        for item in (None, *read_all()):
            engine_of(item, commit)
            say(f"built {item.id if item is not None else 'unchanged'}: {time.monotonic() - started:.0f} s")
        return
    print(plant(asked.names, commit) if asked.command == "plant" else unchanged(asked.times, commit), end="")
    count = len(list(SUITE.glob("*.toml")))
    say(f"{count} scenarios, {SEEDS} seeds, {time.monotonic() - started:.0f} s in total")


if __name__ == "__main__":
    main()
