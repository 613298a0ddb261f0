"""Tests whether this machine has the prerequisites of guests."""

from __future__ import annotations

from narrows.backends.kernel.features import Finding
from narrows.backends.vm import image, package

_REMEDY = "narrows vm prepare"


def findings() -> list[Finding]:
    """Findings about the programs, the guests' kernel and the saved guest."""
    lacking = package.missing()
    found = [
        Finding(name, name not in lacking, ("vm",), "guests", f"{_REMEDY}, or install {debian}")
        for name, debian in package.PROGRAMS.items()
    ]
    kernel = package.found()
    words = f"{kernel.package} {kernel.version}" if kernel else ""
    found.append(Finding("kernel of guests", kernel is not None, ("vm",), "guests", _REMEDY, words))
    saved = bool(kernel) and not lacking and image.existing() is not None
    return [
        *found,
        Finding("saved guest", saved, (), "a start without a boot", f"{_REMEDY}, or the next run"),
    ]
