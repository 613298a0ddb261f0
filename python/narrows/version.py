"""The version of the installed package."""

from __future__ import annotations


def release() -> str:
    """Return the version of Narrows, or "unknown" if the package is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (slow, seldom needed)

    try:
        return version("narrows")
    except PackageNotFoundError:
        return "unknown"
