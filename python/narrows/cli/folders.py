"""The default folder of a run. Runs whose command lines differ get different folders."""

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
"""Maximum length of a folder's name in bytes, well below the file system's limit of 255."""
_UNSAFE = re.compile(r"[^\w.+%=-]+", re.ASCII)


def results_folder(name: str, on: On, overrides: Mapping[str, Any]) -> Path:
    """The folder of a run without `--out`, e.g. ``results/my-kernel-topology.rate=20mbit``.

    Args:
        name: name of the scenario.
        on: backend of the run, which becomes part of the name unless it is the simulator.
        overrides: values by key, from `--set` and `--seed`. The key `name` is ignored, because the folder's
            name already begins with the scenario's name.

    A hash is added to the name if characters of the overrides had to be replaced, or if another run could
    have the same name. If the name would be too long, or if a value is a table or list, the hash replaces the
    overrides. The number of seeds is not in the name, because more seeds only add repetitions to the same
    results.
    """
    parts = [name] if on is On.SIM else [name, str(on)]
    changed = {key: value for key, value in overrides.items() if key != "name"}
    details = [f"{key}={_text(value)}" for key, value in sorted(changed.items())]
    safe = [_UNSAFE.sub("-", detail).strip("-") for detail in details]
    readable = "-".join([*parts, *safe])
    digest = hashlib.sha256("\n".join([*parts, *details]).encode()).hexdigest()[:8]
    if len(readable) > _LONGEST_NAME or any(isinstance(value, dict | list) for value in changed.values()):
        readable = "-".join([*parts, f"set-{digest}"])
    elif safe != details or _is_ambiguous(name, on, details):
        readable = f"{readable}-{digest}"
    return RESULTS / readable


def _is_ambiguous(name: str, on: On, details: list[str]) -> bool:
    """Whether another scenario, backend or set of overrides can have the same readable name.

    For example, the scenario `my-kernel` looks like `my` with `--on kernel`. The single override `a=1-b=2`
    looks like the two overrides `a=1` and `b=2`.
    """
    backends = tuple(f"-{other}" for other in On if other is not On.SIM)
    keys = [detail.partition("=") for detail in details]
    return (
        "=" in name
        or (on is On.SIM and name.endswith(backends))
        or any("-" in key or "=" in value for key, _, value in keys)
    )


def _text(value: object) -> str:
    """A value as text, for the folder's name or its hash."""
    if isinstance(value, str | dict | list):
        return str(value)
    return found(value)
