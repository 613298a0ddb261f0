"""Measures the algorithms of `narrows cc` on this machine's kernel or in a guest with virtual time.

The script compares BBR v1 in eBPF with the kernel's BBR on a dozen paths. It also measures how flows of
BBR-A, BBR-B and BBR-C share a link.

    python benches/cc.py                      # as root on an idle machine: 35 minutes
    python benches/cc.py --only paths --runs 5
    python benches/cc.py --on vm              # in a guest (narrows vm prepare), also on a busy machine
    python benches/cc.py --write              # also into docs/how-to/cc.md

The scenarios run one after the other. If other work on the machine disturbs a run, the kernel backend marks
the run as unsound, and the script repeats it. If three attempts are unsound, the column "not trusted" counts
the run. Runs in a guest are not repeated, because a repetition would give the same result.
"""

import argparse
import itertools
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from documents import fill
from narrows import sweep
from narrows.backends.kernel.backend import Kernel
from narrows.backends.vm.backend import Vm
from narrows.congestion import EBPF
from narrows.errors import NarrowsError
from narrows.scenario.load import loads
from run import BenchError, machine, table

PAIR = ("bbr", EBPF["bbr"])
SHARING = (*PAIR, *(name for name in EBPF if name != "bbr"))
TRIES = 3


@dataclass(frozen=True)
class Bottleneck:
    """One bottleneck with one flow."""

    mbit: int
    rtt_ms: int
    buffer_bdp: int
    loss: float

    def scenario(self, cc: str, seconds: int, seed: int) -> str:
        """The scenario of this path with a controller."""
        loss = f"loss = {self.loss}\n" if self.loss else ""
        return (
            f'duration = "{seconds}s"\nseed = {seed}\n'
            f'[topology]\nkind = "dumbbell"\nrate = "{self.mbit}mbit"\n'
            f'rtt = "{self.rtt_ms}ms"\nqueue = {{ kind = "fifo", limit = "{self.buffer_bdp}bdp" }}\n'
            f'{loss}[[flows]]\ncc = "{cc}"\n'
        )

    def words(self) -> list[str]:
        """The table cells of this path."""
        return [
            str(self.mbit),
            str(self.rtt_ms),
            str(self.buffer_bdp),
            f"{self.loss:.0%}" if self.loss else "-",
        ]


PATHS = [
    *(Bottleneck(*facts, 0) for facts in itertools.product((20, 100), (20, 100), (1, 4))),
    *(Bottleneck(*facts, 1, 0.01) for facts in itertools.product((20, 100), (20, 100))),
]


def shared(cc: str, seconds: int, seed: int) -> str:
    """A scenario at 100 Mbit/s with two flows, as in experiment G1 of the study bbr-gain.

    The RTTs are 10 and 50 ms. The buffer is five times the BDP of the flow with 50 ms.
    """
    return (
        f'duration = "{seconds}s"\nwarmup = "5s"\nseed = {seed}\n'
        f'[topology]\nkind = "dumbbell"\nrate = "100mbit"\n'
        f'rtts = ["10ms", "50ms"]\nqueue = "2083p"\n'
        f'[[flows]]\nname = "short"\ncc = "{cc}"\n[[flows]]\nname = "long"\ncc = "{cc}"\n'
    )


def sound(backend: Kernel | Vm, text: str) -> tuple[list[dict[str, Any]], bool]:
    """Repeats a scenario until a run is sound, at most `TRIES` times.

    Returns the last run's flows and soundness.
    """
    for _ in range(1 if isinstance(backend, Vm) else TRIES):
        results = sweep.run(loads(text), backend=backend)
        trusted = bool(results.soundness["0"]["sound"])
        if trusted:
            break
    return results.flows.to_pylist(), trusted


def where(backend: Kernel | Vm) -> str:
    """One line that describes the machine, and the guest if the runs are in a guest."""
    if not isinstance(backend, Vm):
        return machine()
    guest = backend.facts()["guest"]
    host = machine()
    return f"{guest['kernel_package']} in {guest['emulator']}, clock {guest['clock']}. Host: {host}"


def amount(runs: int, seconds: float) -> str:
    """The number and length of the runs in words."""
    return f"1 run of {seconds} s" if runs == 1 else f"{runs} runs of {seconds} s with different seeds"


def spread(values: Sequence[float]) -> str:
    """The mean, the minimum and the maximum of the values. A single value is printed alone."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def paths(backend: Kernel | Vm, runs: int, seconds: int) -> Iterator[list[str]]:
    """The table rows that compare BBR v1 in eBPF with the kernel's BBR."""
    for path in PATHS:
        goodput: dict[str, list[float]] = {cc: [] for cc in PAIR}
        rtt: dict[str, list[float]] = {cc: [] for cc in PAIR}
        doubtful = 0
        for run in range(runs):
            # The order of the two algorithms alternates, so that other load on the machine disturbs both
            # alike.
            for cc in PAIR if run % 2 == 0 else PAIR[::-1]:
                (flow,), trusted = sound(backend, path.scenario(cc, seconds, run + 1))
                goodput[cc].append(flow["goodput_bps"] / 1e6)
                rtt[cc].append(flow["rtt_mean_s"] * 1e3)
                doubtful += not trusted
        row = path.words()
        for figures in (goodput, rtt):
            kernel, ebpf = (figures[cc] for cc in PAIR)
            difference = statistics.mean(ebpf) / statistics.mean(kernel) - 1
            row += [spread(kernel), spread(ebpf), f"{difference:+.1%}"]
        yield [*row, f"{doubtful} of {2 * runs}"]


def sharing(backend: Kernel | Vm, runs: int, seconds: int) -> Iterator[list[str]]:
    """Table rows for two flows with different RTTs."""
    for cc in SHARING:
        done = [sound(backend, shared(cc, seconds, run + 1)) for run in range(runs)]
        goodput = [[flow["goodput_bps"] / 1e6 for flow in flows] for flows, _ in done]
        doubtful = sum(not trusted for _, trusted in done)
        ratio = [long / short for short, long in goodput]
        queue = [flows[0]["rtt_mean_s"] * 1e3 - 10 for flows, _ in done]
        short, long = zip(*goodput, strict=True)
        yield [f"`{cc}`", spread(short), spread(long), spread(ratio), spread(queue), f"{doubtful} of {runs}"]


PARTS = {
    "paths": (
        paths,
        16,
        ["Mbit/s", "RTT ms", "buffer BDP", "loss", "goodput `bbr`", "eBPF", "", "mean RTT `bbr`", "eBPF", ""],
    ),
    "sharing": (sharing, 40, ["", "10 ms Mbit/s", "50 ms Mbit/s", "ratio", "mean queueing ms"]),
}


def main(arguments: Sequence[str]) -> int:
    """Runs the measurements and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="put the result into docs/how-to/cc.md")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each kind (default: 3)")
    parser.add_argument("--seconds", type=int, metavar="N", help="length of each run, s (default: 16 and 40)")
    parser.add_argument("--on", choices=("kernel", "vm"), default="kernel", help="backend (default: kernel)")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs: at least 1")
    if options.seconds is not None and options.seconds < 6:
        parser.error("--seconds: at least 6, because the first 5 s of two flows are not measured")
    try:
        backend = Vm(print) if options.on == "vm" else Kernel(print)
        for part in [options.only] if options.only else PARTS:
            rows, seconds, header = PARTS[part]
            seconds = options.seconds or seconds
            body = []
            for row in rows(backend, options.runs, seconds):
                print(" | ".join(row), flush=True)  # print now: the next row may take half an hour
                body.append(row)
            name = part if options.on == "kernel" else f"{part}-vm"
            figures = "; mean, smallest and largest value" if options.runs > 1 else ""
            how = f"{where(backend)}\n\nEach figure: {amount(options.runs, seconds)}{figures}."
            text = f"{how}\n\n{table([*header, 'not trusted'], body)}"
            print(text, end="\n\n")
            if options.write:
                fill("how-to/cc.md", name, text)
    except (BenchError, NarrowsError) as e:
        print(f"bench: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
