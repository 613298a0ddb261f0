"""Pairwise fairness of congestion controllers: shares of goodput, and harm to each other."""

from narrows.matrix.cells import Cell, cells
from narrows.matrix.plan import Ask, scenario

__all__ = ["Ask", "Cell", "cells", "scenario"]
