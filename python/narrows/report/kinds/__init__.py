"""The kinds of figures that a study can request by name."""

from __future__ import annotations

from collections.abc import Callable

from narrows.errors import NarrowsError, hint
from narrows.report.figure import Figure
from narrows.report.kinds.compare import bars, convergence, lines
from narrows.report.kinds.crowd import completion_over_size, flow_count
from narrows.report.kinds.curves import curves
from narrows.report.kinds.heat import heat
from narrows.report.kinds.multiples import multiples
from narrows.report.kinds.queue import queue_shares
from narrows.report.kinds.ranking import ranking
from narrows.report.kinds.split import split
from narrows.report.kinds.spread import cdf, ellipses
from narrows.report.kinds.states import states
from narrows.report.kinds.time import delay, rates, shares, stack
from narrows.results.runs import Runs
from narrows.studies.model import FigureSpec

KINDS: dict[str, Callable[[FigureSpec, Runs], Figure]] = {
    "bars": bars,
    "cdf": cdf,
    "completion-over-size": completion_over_size,
    "convergence": convergence,
    "curves": curves,
    "delay": delay,
    "ellipses": ellipses,
    "flow-count": flow_count,
    "heat": heat,
    "lines": lines,
    "multiples": multiples,
    "queue-shares": queue_shares,
    "ranking": ranking,
    "rates": rates,
    "shares": shares,
    "split": split,
    "stack": stack,
    "states": states,
}


def draw(spec: FigureSpec, runs: Runs) -> Figure:
    """The figure that `spec` describes, drawn from the runs that it selects."""
    if spec.kind not in KINDS:
        raise NarrowsError(f"figure {spec.id}: no kind {spec.kind!r}{hint(spec.kind, KINDS)}")
    return KINDS[spec.kind](spec, runs.where(spec.where))


__all__ = ["KINDS", "draw"]
