"""Distinguishes URLs from paths."""

from __future__ import annotations

import re
from pathlib import Path

from narrows.errors import NarrowsError, found

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:/+(.*))?", re.DOTALL)
"""Pattern of a URL. Its protocol must have at least two characters. The pattern accepts `:/`, because `Path`
reduces `://` to `:/`."""


def url_of(place: str | Path) -> str | None:
    """The URL of a place of results, without a final slash (None: the place is a path).

    Accepts a URL that was turned into a `Path`, for example by the command line.
    """
    match = _URL.fullmatch(str(place))
    if match is None:
        return None
    protocol, rest = match[1].lower(), (match[2] or "").rstrip("/")
    return f"{protocol}:///{rest}" if protocol in ("file", "local") else f"{protocol}://{rest}"


def require_folder(place: str | Path, name: str, reason: str = "") -> None:
    """Raise an error if a place is a URL, for an option that accepts only a folder.

    Args:
        place: a path or a URL.
        name: the option or argument that has the place as its value. The message begins with this name.
        reason: why a URL is not possible (empty: the message gives no reason).

    Raises:
        NarrowsError: if the place is a URL.
    """
    if (url := url_of(place)) is not None:
        because = f", because {reason}" if reason else ""
        raise NarrowsError(f"{name}: found {found(url)}, expected a folder{because}")
