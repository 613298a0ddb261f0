"""Trains BRF's bandwidth model from flow records, and exports it to the file that switches read.

The model is scikit-learn's gradient boosting with regression trees (Friedman, 2001). The model predicts the
logarithm of the rate that a flow can use, because rates span several powers of ten. Training minimises the
quantile loss, because the two kinds of error differ in cost. A prediction that is too low slows the flow
down. A prediction that is too high reserves too much bandwidth, but only for one RTT.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from narrows import extras
from narrows.bandwidth_model import FEATURES, FORMAT, LENGTH_MAX, VERSION, Options
from narrows.errors import NarrowsError, OutputError, one_line
from narrows.results.datasets.urls import url_of
from narrows.results.results import Results
from narrows.results.store import write_text
from narrows.results.tables import cannot_write
from narrows.version import release

COLUMNS = ("use_bps", "limited", *FEATURES)
"""The columns of a flow record."""
RECORDS_MIN = 20
_LEARNING_RATE = 0.3
_HELD_OUT = 5
"""Every fifth record is held out for the test."""


@dataclass(frozen=True)
class Training:
    """A model that was trained with all records, and the test of a second model.

    The second model was trained without the held-out records, and tested with them.
    """

    model: dict[str, Any]
    """The contents of the model's file."""
    records: int
    limited: int
    """Number of records whose flow was limited by its application."""
    covered: float
    """Share of the held-out records in which the flow used no more than predicted."""
    error: float
    """Median ratio between the predicted and the used rate, over the held-out records of flows that were
    limited by their application (NaN: there are no such records)."""


_Floats = npt.NDArray[np.float64]


def read(paths: Sequence[Path]) -> pa.Table:
    """The flow records in folders of results, in logs of agents (JSON), or in CSV files.

    Raises:
        NarrowsError: for a path that has no flow records.
    """
    parts = []
    for path in paths:
        table = _table(path)
        if lacking := [name for name in COLUMNS if name not in table.column_names]:
            raise OutputError(f"{path}: found no column {lacking[0]}, expected {', '.join(COLUMNS)}")
        try:
            parts.append(table.select(COLUMNS).cast(pa.schema([(name, pa.float64()) for name in COLUMNS])))
        except pa.ArrowException as error:
            raise OutputError(
                f"{path}: found a value that is no number, expected numbers ({error})"
            ) from None
    return pa.concat_tables(parts)


def _table(path: Path) -> pa.Table:
    if path.is_dir() or url_of(path) is not None:
        return Results.read(path).flow_records
    expected = "expected a folder of results, an agent's log in JSON, or a CSV file"
    try:
        if path.suffix == ".csv":
            return pa.csv.read_csv(path)
        logged = list(_logged(path))
        if not logged:
            raise OutputError(f"{path}: found no flow records, {expected}")
        return pa.Table.from_pylist(logged)
    except (OSError, UnicodeDecodeError, OverflowError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or one_line(str(error))
        raise OutputError(f"{path}: found no flow records ({reason}), {expected}") from None


def _logged(path: Path) -> Iterator[dict[str, Any]]:
    """The flow records in the log of an agent. All other lines are left out."""
    with path.open(encoding="utf-8") as log:
        for line in log:
            if '"flow-record"' not in line:
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("event") == "flow-record":
                yield {name: entry.get(name) for name in COLUMNS}


def train(records: pa.Table, options: Options | None = None) -> Training:
    """Train a model.

    Args:
        records: flow records, as `read` returns them.
        options: size of the model and quantile.

    Raises:
        NarrowsError: if there are too few records, or if a record is invalid.
    """
    extras.require("train", "narrows train")
    options = options or Options()
    use = records["use_bps"].to_numpy()
    if not 0.0 < options.quantile < 1.0:
        raise NarrowsError(f"--quantile: found {options.quantile}, expected a number between 0 and 1")
    if len(use) < RECORDS_MIN:
        raise NarrowsError(f"found {len(use)} flow records, expected at least {RECORDS_MIN}")
    inputs = np.column_stack([records[name].to_numpy() for name in FEATURES])
    numbers = np.column_stack([records[name].to_numpy() for name in COLUMNS])
    if not (np.isfinite(numbers).all() and (use > 0).all()):
        raise NarrowsError("found a flow record with an undefined value, expected numbers and a use above 0")
    target, is_limited = np.log(use), records["limited"].to_numpy() > 0
    held_out = np.arange(len(use)) % _HELD_OUT == 0
    tested = _fit(inputs[~held_out], target[~held_out], options).predict(inputs[held_out])
    # The tolerance allows for rounding in the logarithm and in the prediction, which can make equal rates
    # differ in the last digit.
    covered = float(np.mean(target[held_out] <= tested + 1e-3))
    of_limited = np.abs(tested - target[held_out])[is_limited[held_out]]
    error = float(np.exp(np.median(of_limited))) if of_limited.size else float("nan")
    model = export(_fit(inputs, target, options))
    if not is_limited.all():
        # Flows that were not limited by their application were limited by the port. Their records show the
        # link's rate, not the rate that these flows could use.
        model["unlimited_bps"] = float(use[~is_limited].min()) / 2
    model["about"] = {
        "narrows": release(),
        "records": len(use),
        "limited": int(is_limited.sum()),
        "quantile": options.quantile,
    }
    return Training(model, len(use), int(is_limited.sum()), covered, error)


def _fit(inputs: _Floats, target: _Floats, options: Options) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor  # noqa: PLC0415 (optional, and slow to import)

    regressor = GradientBoostingRegressor(
        loss="quantile",
        alpha=options.quantile,
        n_estimators=options.trees,
        max_depth=options.depth,
        learning_rate=_LEARNING_RATE,
        min_samples_leaf=5,
        random_state=0,
    )
    return regressor.fit(inputs, target)


def export(regressor: Any) -> dict[str, Any]:
    """The contents of a model's file, from a fitted GradientBoostingRegressor."""
    base = float(regressor.init_.predict(np.zeros((1, len(FEATURES))))[0])
    trees = [_tree(estimator.tree_, regressor.learning_rate) for estimator in regressor.estimators_[:, 0]]
    return {"format": FORMAT, "version": VERSION, "base": base, "trees": trees}


def _tree(tree: Any, factor: float) -> list[Any]:
    """The nodes of a tree. scikit-learn numbers them so that children follow their parents."""
    return [
        float(tree.value[node].ravel()[0]) * factor
        if low < 0
        else [FEATURES[tree.feature[node]], float(tree.threshold[node]), int(low), int(high)]
        for node, (low, high) in enumerate(zip(tree.children_left, tree.children_right, strict=True))
    ]


def check_place(path: Path, records: Sequence[Path]) -> None:
    """Check that a model can be written to this file, before it is trained.

    Raises:
        OutputError: if the file cannot be written, or if it holds the records.
    """
    if path.is_dir():
        raise OutputError(f"{path}: found a folder, expected the name of a file")
    if not path.absolute().parent.is_dir():
        raise OutputError(f"{path}: found no folder {path.parent}, expected an existing folder")
    if any(path.resolve() == other.resolve() for other in records):
        raise OutputError(f"{path}: found a file of records, expected another file for the model")


def write(model: dict[str, Any], path: Path) -> None:
    """Write a model's file atomically.

    Raises:
        OutputError: if the file cannot be written, or is too long for switches.
    """
    text = json.dumps(model) + "\n"
    if len(text) > LENGTH_MAX:
        advice = "use fewer --trees or a smaller --depth"
        raise OutputError(f"{path}: found {len(text)} bytes, expected at most {LENGTH_MAX}; {advice}")
    try:
        write_text(path, text)
    except OSError as error:
        raise cannot_write(path, error) from None
