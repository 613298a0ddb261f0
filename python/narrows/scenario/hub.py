"""Finds the networks of the package topohub: Topology Zoo, SNDlib, CAIDA, Gabriel graphs and backbones."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path


@functools.cache
def folder() -> str | None:
    """The folder with the networks (None: the package is not installed)."""
    spec = importlib.util.find_spec("topohub")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "data")
