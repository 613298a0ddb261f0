"""Every pair of congestion controllers on a shared link: shares of the goodput, and harm."""

from narrows.matrix.cells import Cell, cells
from narrows.matrix.plan import Ask, scenario

__all__ = ["Ask", "Cell", "cells", "scenario"]
