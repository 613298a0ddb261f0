"""Finds and reads studies."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from narrows import retired
from narrows.errors import NarrowsError, choice, one_line
from narrows.studies.model import Study


def study_folders() -> list[Path]:
    """Folders of studies: in the installed package, and at the top of a checkout."""
    here = Path(__file__).resolve()
    return [path for path in (here.parent / "library", here.parents[3] / "studies") if path.is_dir()]


def known_studies() -> list[str]:
    """Names of the available studies."""
    return sorted({path.parent.name for root in study_folders() for path in root.glob("*/study.toml")})


def find_study(name: str) -> Path:
    """Folder of the study with that name, or `name` itself if it is the folder of a study."""
    candidates = [Path(name), *(root / name for root in study_folders())]
    for folder in candidates:
        if (folder / "study.toml").is_file():
            return folder
    raise NarrowsError(f"study: {choice(name, known_studies())}")


def load_study(folder: Path) -> Study:
    """Read and check a study's files."""
    table = _read(folder / "study.toml")
    claims = folder / "claims.toml"
    if claims.is_file():
        table["claims"] = _read(claims).get("claims", [])
    try:
        study = Study.model_validate({"id": folder.resolve().name, **table})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise NarrowsError(one_line(f"{folder}: {key}: {first['msg']}")) from None
    for experiment in study.experiments:
        if not experiment.file:
            raise NarrowsError(
                f"{folder}: experiment {experiment.id}: found neither `scenario` nor `printed`, "
                "expected one of them"
            )
        if not (folder / experiment.file).is_file():
            raise NarrowsError(f"{folder}: experiment {experiment.id}: no file {experiment.file}")
    study._folder = folder
    return study


def _read(path: Path) -> dict[str, Any]:
    try:
        return retired.study(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise NarrowsError(one_line(f"{path}: {error}")) from None
