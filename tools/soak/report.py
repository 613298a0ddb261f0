"""The figures of a soak as text."""

from __future__ import annotations

from fairness import Worst
from programs import Program
from result import Result

TIMES = ("before", "idle", "after", "end")


def report(result: Result, programs: list[Program], title: str) -> str:
    """Tables about the faults, the programs, the machine and the flows, and a list of the failures."""
    figures, counts = result.figures, result.connections
    flows = {
        "long connections that closed normally": counts["long"],
        "short connections that closed normally": counts["short"],
        "connections that broke": counts["broken"],
        "connections that could not open": counts["refused"],
        "forged packets": result.forged.total(),
        "implausible packets (last data plane of the switch)": result.switch["implausible"],
        **_goodput("", figures.rated),
        **_goodput(", older than the agent", figures.orphans),
        "stalls of the receiver": figures.stalls,
    }
    parts = [
        f"{title}: {result.seconds / 60:.1f} min, {result.faults.total()} faults\n",
        *(f"  {name:<32}{count:>6}" for name, count in sorted(result.faults.items())),
        *(f"  {f'forged {name}':<32}{count:>6}" for name, count in sorted(result.forged.items())),
        f"\n  {'before load, most, after load':<30}{'starts':>6}{'descriptors':>16}{'threads':>16}"
        f"{'children':>12}{'MiB':>20}",
        *(_program(program) for program in programs),
        f"\n  {'':<32}" + "".join(f"{time:>8}" for time in TIMES),
        *(
            f"  {kind:<32}" + "".join(f"{result.inventories[time][kind]:>8}" for time in TIMES)
            for kind in result.inventories["before"]
        ),
        "",
        *(f"  {name:<52}{value}" for name, value in flows.items()),
        *(f"FAILED: {failure}" for failure in result.failures),
    ]
    return "\n".join(parts)


def _goodput(which: str, worst: Worst) -> dict[str, object]:
    return {
        f"windows{which}": worst.windows,
        f"least part of the fair share{which}": f"{100 * worst.least:.0f} %  {worst.least_where}",
        f"longest below half of it{which}": f"{worst.longest_s:.1f} s  {worst.longest_where}",
    }


def _program(program: Program) -> str:
    def cell(what: str, width: int) -> str:
        uses = (program.idle, program.most, program.end)
        return " ".join(f"{getattr(use, what):.0f}" for use in uses).rjust(width)

    widths = {"descriptors": 16, "threads": 16, "children": 12, "memory_mib": 20}
    return f"  {program.name:<30}{program.starts:>6}" + "".join(cell(*each) for each in widths.items())
