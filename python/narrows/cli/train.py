"""The work of `narrows train`."""

from __future__ import annotations

import json
import math
from pathlib import Path

from narrows import training


def train(records: list[Path], out: Path, choices: tuple[int, int, float], *, as_json: bool) -> None:
    """Train a model, write its file, and print the result of the test."""
    trees, depth, quantile = choices
    result = training.train(training.read(records), training.Options(trees, depth, quantile))
    training.write(result.model, out)
    if as_json:
        figures = {
            "model": str(out),
            "records": result.records,
            "limited": result.limited,
            "covered": _defined(result.covered),
            "error": _defined(result.error),
        }
        print(json.dumps(figures))
        return
    print(f"{out}: {result.records} flow records, {result.limited} of flows limited by their application")
    print(f"held out: {100 * result.covered:.0f} % use at most the prediction (aim: {100 * quantile:g} %)")
    if not math.isnan(result.error):
        print(
            f"held out, limited flows: prediction and use differ by a factor of {result.error:.2f} (median)"
        )


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value
