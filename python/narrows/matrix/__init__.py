"""Every congestion controller beside every other: who takes how much, and what it costs whom."""

from narrows.matrix.cells import Cell, cells
from narrows.matrix.plan import Ask, scenario

__all__ = ["Ask", "Cell", "cells", "scenario"]
