"""Finding and reading a study."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from narrows.errors import NarrowsError, choice, one_line
from narrows.studies.model import Study


def study_folders() -> list[Path]:
    """Where studies live: inside the installed package, or at the top of the checkout."""
    here = Path(__file__).resolve()
    return [path for path in (here.parent / "library", here.parents[3] / "studies") if path.is_dir()]


def known_studies() -> list[str]:
    """Names of the studies that are at hand."""
    return sorted({path.parent.name for root in study_folders() for path in root.glob("*/study.toml")})


def find_study(name: str) -> Path:
    """Folder of the study of that name, or the folder itself if `name` is one."""
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
                f"{folder}: experiment {experiment.id}: a scenario or a printed table is needed"
            )
        if not (folder / experiment.file).is_file():
            raise NarrowsError(f"{folder}: experiment {experiment.id}: no file {experiment.file}")
    study._folder = folder
    return study


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise NarrowsError(one_line(f"{path}: {error}")) from None
