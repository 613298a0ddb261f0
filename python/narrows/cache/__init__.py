"""Keeps the outputs of simulated runs, so that no run is made twice (`--cache`, `narrows cache`)."""

from narrows.cache.backend import Cached, cached
from narrows.cache.entries import Cache, Entry

__all__ = ["Cache", "Cached", "Entry", "cached"]
