"""Finds and reads studies."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from narrows import retired
from narrows.errors import NarrowsError, ScenarioError, choice, found, unreadable
from narrows.scenario.load import override
from narrows.scenario.model import Scenario
from narrows.studies.computed import check
from narrows.studies.model import Experiment, Study
from narrows.studies.problems import translate


def study_folders() -> list[Path]:
    """Folders that contain studies: in the installed package, and `studies` at the top of a checkout."""
    here = Path(__file__).resolve()
    return [path for path in (here.parent / "library", here.parents[3] / "studies") if path.is_dir()]


def known_studies() -> list[str]:
    """Names of the available studies."""
    return sorted({path.parent.name for root in study_folders() for path in root.glob("*/study.toml")})


def find_study(name: str) -> Path:
    """The folder `name` if it contains a study, otherwise the folder of the study with this name."""
    candidates = [Path(name), *(root / name for root in study_folders())]
    for folder in candidates:
        if (folder / "study.toml").is_file():
            return folder
    raise NarrowsError(f"study: {choice(name, known_studies())}")


def load_study(folder: Path) -> Study:
    """Read and check a study's files.

    Raises:
        NarrowsError: if a file is invalid. The text is one line with file, key, value found and value
            expected.
    """
    table = _tables(folder / "study.toml")
    claims = folder / "claims.toml"
    if claims.is_file():
        table["claims"] = _tables(claims).get("claims", [])
    try:
        study = Study.model_validate({"id": folder.resolve().name, **table})
    except ValidationError as error:
        raise _at(translate(error, table, Study), folder, table) from None
    except ScenarioError as error:
        raise _at(error, folder, table) from None
    study._folder = folder
    for experiment in study.experiments:
        key = f"experiments.{experiment.id}"
        if not experiment.file and experiment.computed is None and not experiment.is_as_published:
            message = "expected scenario, printed, computed, iperf3 or pings"
            raise _at(ScenarioError(message, key), folder, table)
        if experiment.computed is not None:
            try:
                check(experiment.computed)
            except ScenarioError as error:
                raise _at(error.at(key), folder, table) from None
        if experiment.file and not (folder / experiment.file).is_file():
            name = "scenario" if experiment.scenario else "printed"
            message = f"found {found(experiment.file)}, expected a file in the study's folder"
            raise _at(ScenarioError(message, f"{key}.{name}"), folder, table)
    for i, table_ in enumerate(study.tables):
        known = _values([study.experiment(table_.experiment)], folder, table_.rows)
        for j, column in enumerate(table_.columns):
            for row in column.paper if known else ():
                if row not in known:
                    key = f"tables.{i}.columns.{j}.paper"
                    raise _at(ScenarioError(choice(row, known), key), folder, table)
    for i, reading in enumerate(study.readings):
        values = _values(study.experiments, folder, reading.factor)
        for name, value in (("repaired", reading.repaired), ("printed", reading.printed)):
            if value not in values:
                raise _at(ScenarioError(choice(value, values), f"readings.{i}.{name}"), folder, table)
    return study


def _at(error: ScenarioError, folder: Path, table: dict[str, Any]) -> ScenarioError:
    """Add the file to the error, and replace indices in its key by ids of claims, figures and experiments."""
    parts = error.key.split(".")
    file = "claims.toml" if parts[0] == "claims" and (folder / "claims.toml").is_file() else "study.toml"
    place: Any = table
    for i, part in enumerate(parts):
        if isinstance(place, list) and part.isdigit() and int(part) < len(place):
            place = place[int(part)]
            if isinstance(place, dict) and isinstance(place.get("id"), str):
                parts[i] = place["id"]
        else:
            place = place.get(part) if isinstance(place, dict) else None
    return ScenarioError(error.message, ".".join(parts), str(folder / file))


def _values(experiments: Iterable[Experiment], folder: Path, factor: str) -> list[str]:
    """The values of a factor in the sweeps of experiments.

    Only names of cases and other texts are returned.
    """
    values: list[str] = []
    for experiment in experiments:
        if experiment.scenario:
            sweep = read_scenario(folder, experiment)["sweep"]
            key = experiment.factors.get(factor, factor)
            values += [str(case.get("name")) for case in sweep.get("case", [])] if key == "case" else []
            values += [value for value in sweep.get("vary", {}).get(key, []) if isinstance(value, str)]
    return list(dict.fromkeys(values))


def read_scenario(
    folder: Path, experiment: Experiment, *, real: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """An experiment's scenario as tables, with the changes in the experiment's `set`.

    The table `sweep` always exists.

    Args:
        folder: the study's folder.
        experiment: an experiment with a scenario.
        real: for real stacks, the study's `kernel_set`. The experiment's `kernel.set` also applies there.

    Raises:
        ScenarioError: if the file cannot be read, or if a key that is set does not exist.
    """
    path = folder / experiment.scenario
    data = retired.scenario(_toml(path), str(path))
    data.setdefault("sweep", {})
    for place, key, value in _changes(experiment, real):
        try:
            override(data, key, value)
        except ScenarioError as error:
            raise ScenarioError(f"{key}: {error.message}", place, str(folder / "study.toml")) from None
    return data


def checked(study: Study, experiment: Experiment, data: Mapping[str, Any]) -> Scenario:
    """The experiment's scenario with these tables.

    Raises:
        ScenarioError: if a value is wrong. The error names the scenario's file.
    """
    source = str(study.folder / experiment.scenario)
    try:
        return Scenario(**data).with_source(source)
    except ScenarioError as error:
        raise error.in_source(source) from None


def _changes(experiment: Experiment, real: Mapping[str, Any] | None) -> list[tuple[str, str, Any]]:
    """The keys that change, in order. Each has its place in the study's file, the key and the value."""
    own = f"experiments.{experiment.id}"
    tables: dict[str, Mapping[str, Any]] = {f"{own}.set": experiment.set}
    if real is not None and not experiment.kernel.never:
        tables |= {"kernel_set": real, f"{own}.kernel.set": experiment.kernel.set}
    return [(place, key, value) for place, values in tables.items() for key, value in values.items()]


def scenario_text(folder: Path, experiment: Experiment, *, real: Mapping[str, Any] | None = None) -> str:
    """The text of an experiment's scenario file, followed by the keys that change.

    `real` is as for `read_scenario`.
    """
    text = (folder / experiment.scenario).read_text(encoding="utf-8")
    changes = [f"# {key} = {json.dumps(value)}" for _, key, value in _changes(experiment, real)]
    if not changes:
        return text
    return "\n".join([text.rstrip("\n"), "", f"# Keys that {experiment.id} sets:", *changes, ""])


def _tables(path: Path) -> dict[str, Any]:
    """The tables of a study's file, with retired keys under their current names."""
    return retired.study(_toml(path), str(path))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(unreadable(error, "a file of a study"), "", str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"found no valid TOML: {error}", "", str(path)) from None
