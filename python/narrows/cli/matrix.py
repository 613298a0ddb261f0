"""`narrows matrix`: every congestion controller beside every other, as heat maps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from narrows import extras, sweep, units
from narrows.cli.options import checked_seed, parsed, positive, some_rate
from narrows.cli.run import INTERRUPTED, progress_of
from narrows.errors import Expected
from narrows.matrix.plan import BUFFERS, VARIANTS, Ask, choose, scenario
from narrows.scenario.served import MARKED
from narrows.signals import terminable


def matrix(
    controllers: Annotated[
        list[str] | None,
        typer.Argument(
            help="Congestion controllers. If left out all but those that need the network's help, variants "
            f"({', '.join(VARIANTS)}) and, without --mark, {', '.join(MARKED)}.",
            show_default=False,
        ),
    ] = None,
    everyone: Annotated[
        bool,
        typer.Option("--all", help="All of them; those that need the network's help get it."),
    ] = False,
    rate: Annotated[str, typer.Option(help="L3 rate of the bottleneck.")] = "100mbit",
    rtt: Annotated[str, typer.Option(help="Two-way propagation delay.")] = "40ms",
    buffer: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Queue of the bottleneck; may be repeated. {', '.join(BUFFERS)} if left out.",
            show_default=False,
        ),
    ] = None,
    mark: Annotated[
        str | None,
        typer.Option(
            help="Mark packets above this queue length, e.g. 0.17bdp, for controllers that heed ECN (dctcp).",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[str, typer.Option(help="Random loss behind the queue.")] = "0%",
    duration: Annotated[str, typer.Option(help="Length of a run.")] = "60s",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per cell.")] = 5,
    seed: Annotated[int, typer.Option(help="The first.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for tables, page and pictures.")] = Path("results/matrix"),
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Runs at a time; one per core if left out.")
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Take the finished runs of an earlier, interrupted one.")
    ] = False,
    figures: Annotated[bool, typer.Option(help="Write figures as SVG, PNG and PDF too.")] = True,
) -> None:
    """Run every congestion controller beside every other, and say who takes what from whom."""
    extras.require("report", "matrix")
    # Drawing libraries are slow to import, and `narrows --help` should not be.
    from narrows.matrix.cells import cells  # noqa: PLC0415
    from narrows.matrix.page import notes, summary, write  # noqa: PLC0415

    for option, value, parse in (
        ("--rate", rate, some_rate),
        ("--rtt", rtt, units.parse_duration),
        ("--duration", duration, positive),
        *(("--buffer", item, units.parse_limit) for item in buffer or ()),
        *((("--mark", mark, _some_length),) if mark is not None else ()),
        ("--loss", loss, units.parse_probability),
    ):
        parsed(option, value, parse)
    known = [name for name, _ in sweep.simulator().congestion_controllers()]
    lengths: dict[units.Limit, str] = {}
    for item in buffer or BUFFERS:
        lengths.setdefault(units.parse_limit(item), item)  # "1bdp" and "1.0bdp" are one
    ask = Ask(
        choose(known, controllers or (), everyone=everyone, marks=mark is not None),
        rate,
        rtt,
        tuple(lengths.values()),
        duration,
        seeds,
        checked_seed(seed),
        units.parse_probability(loss),
        mark,
    )
    with progress_of("matrix") as progress, terminable():
        try:
            results = sweep.run(
                scenario(ask),
                out=out / "results",
                jobs=jobs,
                formats=("parquet",),
                progress=progress,
                resume=reuse,
            )
        except sweep.Interrupted as stopped:
            print(f"interrupted: {stopped}; --reuse takes them", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    measured = cells(results, ask)
    page = write(measured, results, ask, out, files=figures, say=lambda line: print(line, file=sys.stderr))
    for length in ask.buffers:
        print(f"{length}:")
        for line in summary(measured, length):
            print(f"  {line}")
    for note in notes(ask):
        print(f"note: {note}")
    print(f"tables in {out}, page in {page}")


def _some_length(text: object) -> units.Limit:
    """A queue length that can be passed; for `parsed`."""
    length = units.parse_limit(text)
    if length == units.Limit():
        raise Expected("a length such as '0.17bdp' or a number of packets")
    return length
