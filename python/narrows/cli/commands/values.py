"""Values for tab completion, from sources that are fast to import."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from narrows.congestion import EBPF
from narrows.errors import NarrowsError

PACKAGE = Path(__file__).parents[2]
KINDS = ("congestion", "rate", "stacks", "queues", "topologies", "networks", "loss", "measures")
"""Kinds of names that `narrows list` prints."""
CELL_SETS = ("full", "core", "ci")
"""Sets of cells that `narrows validate` accepts by name."""
EXPORTS = ("perfetto", "flent", "qlog")
"""Formats of `narrows export`."""
KERNEL_CONTROLLERS = ("all", *EBPF)
"""Congestion controllers that `narrows cc` can load."""
_DEEPEST = 4
"""Maximum number of parts in a scenario key that completion offers."""


def beginning(source: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Make a completion that offers the names of a source that begin with the typed text."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in source() if name.startswith(incomplete)]

    return complete


def comma_separated(source: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Make a completion for a comma-separated list, which offers names for the list's last part."""

    def complete(incomplete: str) -> list[str]:
        head, comma, last = incomplete.rpartition(",")
        return [f"{head}{comma}{name}" for name in source() if name.startswith(last)]

    return complete


def congestion_controllers() -> list[str]:
    """Names in the simulator's registry, or none if the native module cannot be loaded."""
    try:
        from narrows import _native  # noqa: PLC0415 (may be absent)
    except (ImportError, NarrowsError):
        return []
    return [name for name, _ in _native.congestion_controllers()]


def studies() -> list[str]:
    """Names of the studies in the package or in the checkout."""
    roots = (PACKAGE / "studies" / "library", PACKAGE.parents[1] / "studies")
    return sorted({path.parent.name for root in roots for path in root.glob("*/study.toml")})


def scenario_keys(incomplete: str) -> list[str]:
    """Keys of a scenario that `--set` can replace, from the JSON schema, with a final `=`."""
    if "=" in incomplete:
        return []
    schema = json.loads((PACKAGE / "scenario" / "schema.json").read_text(encoding="utf-8"))
    offered = _keys(schema, schema, 1)
    return sorted({key for key in offered if key.startswith(incomplete)})


def _keys(schema: dict[str, Any], part: dict[str, Any], depth: int) -> set[str]:
    """Keys below a part of the schema: `topology.rate=`, `flows.*.cc=`."""
    found: set[str] = set()
    for table in _tables(schema, part):
        for name, value in table.get("properties", {}).items():
            found.add(f"{name}=")
            if depth < _DEEPEST:
                items = _items(schema, value)
                below = _keys(schema, value if items is None else items, depth + 1)
                between = "." if items is None else ".*."
                found |= {f"{name}{between}{key}" for key in below}
    return found


def _tables(schema: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables that a part of the schema may be. References are followed."""
    if reference := part.get("$ref"):
        return _tables(schema, schema["$defs"][reference.rsplit("/", 1)[1]])
    choices = part.get("anyOf", []) + part.get("oneOf", [])
    if choices:
        return [table for choice in choices for table in _tables(schema, choice)]
    return [part] if "properties" in part else []


def _items(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a list's entries, or None if the part is not a list of tables."""
    for choice in [part, *part.get("anyOf", [])]:
        items = choice.get("items") if choice.get("type") == "array" else None
        if isinstance(items, dict) and _tables(schema, items):
            return items
    return None
