"""Finds the networks of the package topohub: Topology Zoo, SNDlib, CAIDA, Gabriel graphs and backbones."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from narrows.scenario.model import Scenario


def needed(scenarios: Iterable[Scenario]) -> str | None:
    """The folder with the networks, if one of the scenarios has a published network."""
    return folder() if any(item.checked.has_published_network for item in scenarios) else None


@functools.cache
def folder() -> str | None:
    """The folder with the networks (None: the package is not installed)."""
    spec = importlib.util.find_spec("topohub")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "data")
