"""Fuzzes the parsers that read untrusted input, with libFuzzer (Rust and eBPF) and Atheris (Python).

    tools/fuzz.py                          # all targets, one minute in total, as in CI
    tools/fuzz.py --seconds 3600           # all targets, one hour in total
    tools/fuzz.py openflow --seconds 600   # one target
    tools/fuzz.py switch --input FILE      # run one input again
    tools/fuzz.py http --keep              # add inputs that reach new code to the corpus

Each target first runs its inputs in tests/fuzz/corpus and tests/fuzz/regressions. New inputs and findings go
to results/fuzz. A seed always gives the same sequence of inputs, so a failure is reproducible.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import prerequisites

ROOT = Path(__file__).resolve().parent.parent
INPUTS = ROOT / "tests/fuzz"
RESULTS = ROOT / "results/fuzz"
WRAPPER = ROOT / "crates/narrows-fuzz/rustc-with-coverage"
LIMITS = ("-timeout=25", "-rss_limit_mb=1024", "-print_final_stats=1")
"""An input fails if it runs for 25 s. On an idle machine, the slowest valid input takes 20 ms."""
JOBS = 2


@dataclass(frozen=True)
class Target:
    """A fuzzer, and the command that starts it."""

    name: str
    parser: str
    """The parser in words, for the table."""
    length_max: int
    """Longest input, bytes."""
    language: str = "rust"
    needs_root: bool = False

    @property
    def command(self) -> list[str]:
        """The command without libFuzzer's options."""
        if self.language == "rust":
            return [str(ROOT / "target/debug" / f"fuzz-{self.name}")]
        return [str(INPUTS / "harness.py")]

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables: this script's Python is first in PATH, and the hash seed is fixed."""
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        own = {
            "FUZZ_TARGET": self.name,
            "PATH": path,
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(ROOT / "python"),
        }
        return {**os.environ, **own}


TARGETS = (
    Target("http", "the agent's metrics page", 8300),
    Target("session", "the agent's connection to the controller, with TLS", 4096),
    Target("status", "the status socket", 4096),
    Target("option", "the reference codec of rates in TCP headers", 128),
    Target("slots", "pinned flows and messages in the control loop", 4096),
    Target("switch", "packets in the switch program (eBPF)", 2048, needs_root=True),
    Target("host", "headers and packets in the programs of senders and receivers (as normal code)", 2048),
    Target("openflow", "OpenFlow, from the bytes to the decisions", 4096, "python"),
    Target("frames", "frames that switches copy to the controller", 512, "python"),
    Target("agents", "bodies of agents and events of switches in the controller", 4096, "python"),
    Target("channel", "connections of agents in the controller, with TLS", 4096, "python"),
    Target("page", "the controller's page", 4096, "python"),
)


@dataclass(frozen=True)
class Outcome:
    """The result of one target."""

    target: Target
    failed: bool
    output: str

    def number(self, name: str) -> str:
        """A statistic that libFuzzer prints when it ends."""
        lines = [line for line in self.output.splitlines() if line.startswith(f"stat::{name}:")]
        return lines[-1].split()[-1] if lines else "-"

    @property
    def runs(self) -> str:
        """Number of inputs that were run.

        It comes from the line `Done`, because Atheris does not print libFuzzer's statistics.
        """
        lines = [line.split() for line in self.output.splitlines() if line.startswith("Done ")]
        return lines[-1][1] if lines else "-"

    @property
    def coverage(self) -> str:
        """Number of edges of the control flow graph that the inputs have reached."""
        lines = [line.split() for line in self.output.splitlines() if " cov: " in line]
        return lines[-1][lines[-1].index("cov:") + 1] if lines else "-"


def obstacle(target: Target) -> str | None:
    """Why a target cannot run here; None if it can."""
    if target.needs_root and os.geteuid() != 0:
        return "needs root"
    if target.language == "python":
        return None if find_spec("atheris") else "found no Atheris"
    missing = prerequisites.PARTS["agent"].missing()
    return f"found no {', '.join(tool.name for tool in missing)}" if missing else None


def build(targets: list[Target]) -> None:
    """Builds the Rust targets with coverage counters."""
    names = [target.name for target in targets if target.language == "rust"]
    if not names:
        return
    # With `--workspace` and `--test`, cargo selects the same features as `make test`. It then reuses the
    # dependencies that are already built.
    command = ["cargo", "build", "--locked", "--quiet", "--workspace", "--test", "nothing"]
    command += [argument for name in names for argument in ("--bin", f"fuzz-{name}")]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "RUSTC_WORKSPACE_WRAPPER": str(WRAPPER)})


def folders(target: Target) -> list[str]:
    """The folders of inputs in the repository."""
    return [str(path) for kind in ("corpus", "regressions") if (path := INPUTS / kind / target.name).is_dir()]


def start(
    target: Target, arguments: list[str], output: int | None = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Runs a target, and waits for its end."""
    return subprocess.run(
        [*target.command, *arguments],
        cwd=ROOT,
        env=target.environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output and subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def fuzz(target: Target, seconds: int, seed: int) -> Outcome:
    """Fuzzes one target."""
    found, new = RESULTS / "findings" / target.name, RESULTS / "corpus" / target.name
    for folder in (found, new):
        folder.mkdir(parents=True, exist_ok=True)
    options = [
        f"-seed={seed}",
        f"-max_total_time={seconds}",
        f"-max_len={target.length_max}",
        f"-artifact_prefix={found}/",
    ]
    done = start(target, [*options, *LIMITS, str(new), *folders(target)])
    return Outcome(target, done.returncode != 0, done.stdout)


def keep(target: Target) -> None:
    """Adds the new inputs to the corpus, and removes inputs that are not needed to reach all known code."""
    corpus, new = INPUTS / "corpus" / target.name, RESULTS / "corpus" / target.name
    if not new.is_dir():
        print(f"{target.name}: found no {new.relative_to(ROOT)}; try: tools/fuzz.py {target.name}")
        return
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder)
        done = start(
            target, ["-set_cover_merge=1", f"-max_len={target.length_max}", folder, str(corpus), str(new)]
        )
        if done.returncode or not any(merged.iterdir()):
            sys.exit(f"{target.name}: cannot merge the corpora\n{done.stdout}")
        shutil.rmtree(corpus)
        shutil.copytree(merged, corpus)
    print(f"{target.name}: {len([*corpus.iterdir()])} inputs")


def report(outcomes: list[Outcome], seed: int) -> int:
    """Prints a table and the findings; returns an exit code."""
    print(f"{'target':<10} {'inputs':>9} {'coverage':>9}  parser")
    for outcome in outcomes:
        target = outcome.target
        print(f"{target.name:<10} {outcome.runs:>9} {outcome.coverage:>9}  {target.parser}")
    failed = [outcome for outcome in outcomes if outcome.failed]
    for outcome in failed:
        name = outcome.target.name
        print(f"\n{name}: a finding with seed {seed}:\n{outcome.output[-6000:]}", file=sys.stderr)
        print(
            f"{name}: run it again with tools/fuzz.py {name} --input FILE, repair the parser, and move\n"
            f"the file from results/fuzz/findings/{name} to tests/fuzz/regressions/{name}",
            file=sys.stderr,
        )
    return 1 if failed else 0


def main() -> int:
    """Carries out one of the commands of the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="targets (default: all)")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="time in all (default: 60)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of libFuzzer (default: 1)")
    parser.add_argument("--input", type=Path, metavar="FILE", help="run only this input")
    parser.add_argument("--keep", action="store_true", help="add new inputs to the corpus, and do not fuzz")
    options = parser.parse_args()
    known = {target.name: target for target in TARGETS}
    if unknown := [name for name in options.targets if name not in known]:
        parser.error(f"found {unknown[0]!r}, expected one of {', '.join(known)}")
    targets = [known[name] for name in options.targets] or list(TARGETS)
    left_out = {target.name: reason for target in targets if (reason := obstacle(target))}
    if left_out:
        print("left out:", ", ".join(f"{name} ({reason})" for name, reason in left_out.items()))
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            return 1
    targets = [target for target in targets if target.name not in left_out]
    if not targets:
        return 0
    build(targets)
    if options.input:
        codes = [start(target, [str(options.input)], output=None).returncode for target in targets]
        return 1 if any(codes) else 0
    if options.keep:
        for target in targets:
            keep(target)
        return 0
    jobs = min(JOBS, len(targets))
    seconds = max(1, options.seconds * jobs // len(targets))
    print(f"fuzzing {len(targets)} parsers for {seconds} s each, with seed {options.seed}", flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(lambda target: fuzz(target, seconds, options.seed), targets))
    return report(outcomes, options.seed)


if __name__ == "__main__":
    sys.exit(main())
