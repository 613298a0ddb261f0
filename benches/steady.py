"""Measures the possible gain and the error of fast-forwarding steady states. Narrows does not fast-forward.

    python benches/steady.py

Wormhole (Long et al., NSDI 2026) stops simulating packets while the rates of flows are constant, and resumes
when a flow begins or ends. Here two bulk flows share a link, and no flow begins or ends after the start. Each
sample covers one RTT. A state counts as steady when the goodput of each flow varied by less than a limit in
the last ten samples. A simulator that fast-forwards would then give each flow its mean goodput of these
samples until the end.

The gain is the duration divided by the simulated time up to the steady state. The error compares the assumed
goodput with the goodput of the complete run over the same time. Each row summarises five seeds. The link has
a queue of 1 BDP. For DCTCP, the queue marks packets while it is longer than 20 packets.
"""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from narrows import sweep  # noqa: E402
from narrows.scenario.load import loads  # noqa: E402

CONTROLLERS = ("reno", "cubic", "bbr", "bbr3", "dctcp", "brf")
LIMITS = (0.01, 0.05, 0.1, 0.2)
"""Largest difference between two of the samples, as a share of their mean."""
SAMPLES = 10
DURATION_S = 60
RTT_S = 0.02

SCENARIO = """
duration = "{duration}s"
[topology]
kind = "dumbbell"
rate = "100mbit"
rtt = "{rtt}ms"
queue = {queue}
[probes]
interval = "{rtt}ms"
[[flows]]
cc = "{cc}"
count = 2
start_jitter = "{rtt}ms"
{rate_controller}
[sweep]
seeds = 5
"""
MARKING = '{ kind = "threshold", limit = "1bdp", mark = 20 }'
RATE_CONTROLLER = '[[rate_controllers]]\nkind = "brf"\nlink = "bottleneck"'


@dataclass(frozen=True)
class Forward:
    """One run that could be fast-forwarded."""

    gain: float
    error: float
    """Largest relative error of a flow's goodput."""


def fast_forward(goodput: npt.NDArray[np.float64], limit: float) -> Forward | None:
    """Looks for a steady state in the samples of a run (flows x samples). Returns None if there is none."""
    for end in range(SAMPLES, goodput.shape[1] - SAMPLES):
        last = goodput[:, end - SAMPLES : end]
        assumed = last.mean(axis=1)
        if (assumed > 0).all() and ((last.max(axis=1) - last.min(axis=1)) <= limit * assumed).all():
            real = goodput[:, end:].mean(axis=1)
            return Forward(goodput.shape[1] / end, float((abs(assumed - real) / real).max()))
    return None


def main() -> None:
    """Measures each controller with each limit, and prints a row of a table for each."""
    print("| controller | limit | runs with a steady state | gain | error: median | largest |")
    print("| --- | --- | --- | --- | --- | --- |")
    for cc in CONTROLLERS:
        text = SCENARIO.format(
            duration=DURATION_S,
            rtt=int(RTT_S * 1000),
            cc=cc,
            queue=MARKING if cc == "dctcp" else '"1bdp"',
            rate_controller=RATE_CONTROLLER if cc == "brf" else "",
        )
        samples = sweep.run(loads(text)).flow_samples.to_pandas()
        runs = [
            run.pivot_table(index="flow", columns="t_s", values="goodput_bps").dropna(axis=1).to_numpy()
            for _, run in samples.groupby("run")
        ]
        for limit in LIMITS:
            found = [forward for run in runs if (forward := fast_forward(run, limit))]
            row = f"| {cc} | {limit:.0%} | {len(found)} of {len(runs)} |"
            if found:
                errors = [forward.error for forward in found]
                gain = statistics.median(forward.gain for forward in found)
                row += f" {gain:.1f} | {statistics.median(errors):.1%} | {max(errors):.1%} |"
            else:
                row += " - | - | - |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
