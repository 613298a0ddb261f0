"""What the controller needs beside Narrows itself: the extra [controller]."""

from __future__ import annotations

import importlib.util

PACKAGES = ("os_ken", "fastapi", "uvicorn", "networkx")
REMEDY = "pip install 'narrows[controller]'"


def missing() -> list[str]:
    """Packages that are not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]
