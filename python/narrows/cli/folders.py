"""The default folder of a run: runs that differ on the command line get different folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from narrows.cli.commands.shared import On
from narrows.errors import found

RESULTS = Path("results")
_LONGEST_NAME = 120
"""Bytes of a folder's name, well below the file system's 255."""
_UNSAFE = re.compile(r"[^\w.+%=-]+", re.ASCII)


def results_folder(name: str, on: On, overrides: Mapping[str, Any]) -> Path:
    """The folder of a run without `--out`, e.g. ``results/my-kernel-topology.rate=20mbit``.

    Args:
        name: of the scenario.
        on: backend of the run; the simulator adds nothing to the name.
        overrides: values by key, from `--set` and `--seed`. `name` is in the scenario's name already.

    The number of seeds is not in the name: more seeds give the same results with more repetitions.
    """
    parts = [name] if on is On.SIM else [name, str(on)]
    changed = {key: value for key, value in overrides.items() if key != "name"}
    details = [f"{key}={_text(value)}" for key, value in sorted(changed.items())]
    readable = "-".join([*parts, *(_UNSAFE.sub("-", detail).strip("-") for detail in details)])
    if len(readable) > _LONGEST_NAME or any(isinstance(value, dict | list) for value in changed.values()):
        digest = hashlib.sha256("\n".join(details).encode()).hexdigest()[:8]
        readable = "-".join([*parts, f"set-{digest}"])
    return RESULTS / readable


def _text(value: object) -> str:
    """A value as the folder's name shows it; tables and lists are only hashed."""
    if isinstance(value, str | dict | list):
        return str(value)
    return found(value)
