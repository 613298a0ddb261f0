"""The table of errors: a row per algorithm, cell and flow, as Parquet and CSV.

errors.{parquet,csv}   levels of the factors, and for each figure the medians of both sides (and of ns-3),
                       the range of the real runs, and the error
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from narrows.results import tables
from narrows.validate import measures
from narrows.validate.runner import Finding

NAME = "errors"


def row(finding: Finding) -> dict[str, Any]:
    """A finding as a row, with figures in the units of the other tables."""
    cell = finding.cell
    found: dict[str, Any] = {
        "algorithm": finding.algorithm,
        "rate_mbit": cell.rate,
        "rtt_ms": cell.rtt,
        "buffer_bdp": cell.buffer,
        "loss_percent": cell.loss,
        "flows": str(cell.flows),
        "flow": finding.flow,
        "real_runs": finding.real.runs,
        "unsound_runs": finding.unsound,
        "simulated_runs": finding.model.runs,
    }
    for figure in measures.FIGURES:
        found[f"{figure}_real"] = finding.real.median(figure)
        found[f"{figure}_real_min"], found[f"{figure}_real_max"] = finding.real.range(figure)
        found[f"{figure}_sim"] = finding.model.median(figure)
        found[f"{figure}_error"] = finding.errors[figure]
        if finding.other is not None:
            found[f"{figure}_ns3"] = finding.other.median(figure)
            found[f"{figure}_ns3_error"] = finding.other_errors[figure]
    found["window_distance"] = finding.errors["window"]
    if finding.other is not None:
        found["window_distance_ns3"] = finding.other_errors["window"]
    return found


def write(findings: Iterable[Finding], folder: Path) -> None:
    """Write the table in both formats."""
    rows = [row(finding) for finding in findings]
    names = list(dict.fromkeys(name for one in rows for name in one))
    table = pa.table({name: [one.get(name) for one in rows] for name in names})
    for suffix in tables.FORMATS:
        tables.write(folder / f"{NAME}.{suffix}", table)
