"""The work of `narrows train`."""

from __future__ import annotations

import json
import math
from pathlib import Path

from narrows import training
from narrows.bandwidth_model import Options


def train(records: list[Path], out: Path, options: Options, *, as_json: bool) -> None:
    """Train a model, write its file, and print the result of the test."""
    training.check_place(out, records)
    result = training.train(training.read(records), options)
    training.write(result.model, out)
    if as_json:
        figures = {
            "model": str(out),
            "records": result.records,
            "limited": result.limited,
            "covered": result.covered,
            "error": _defined(result.error),
        }
        print(json.dumps(figures))
        return
    print(f"{out}: {result.records} flow records, of which {result.limited} are of application-limited flows")
    covered, aim = 100 * result.covered, 100 * options.quantile
    print(f"held-out records: in {covered:.0f} %, the flow used no more than predicted (aim: {aim:g} %)")
    if not math.isnan(result.error):
        print(
            "held-out records of application-limited flows: median factor between prediction and use "
            f"{result.error:.2f}"
        )


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value
