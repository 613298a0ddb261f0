"""Keeps the outputs of simulated runs, so that no run is repeated (`--cache`, `narrows cache`)."""

from narrows.cache.backend import Cached, cached
from narrows.cache.entries import Cache, Entry

__all__ = ["Cache", "Cached", "Entry", "cached"]
