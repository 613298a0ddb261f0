"""The playground: the page that runs scenarios in a browser.

`make web` puts the page into this folder, and wheels of releases contain it. A package that pip builds from
the source distribution has no page.
"""

from __future__ import annotations

import base64
import html
import json
import os
import stat
import tempfile
import zlib
from pathlib import Path

from narrows import _native
from narrows.errors import NarrowsError, OutputError, ScenarioError
from narrows.playground.text import scenario_text
from narrows.results.results import Results
from narrows.scenario.load import load

PAGE = Path(__file__).with_name("narrows-play.html")
MOST_BYTES = 700_000
"""Maximum length of a scenario, equal to `MOST_BYTES` in web/src/url.ts. Firefox accepts addresses of up to
1 MiB, and Chromium of up to 2 MiB. Base64 needs a third more characters than bytes.
"""
MOST_POINTS = 64
"""Maximum number of points of a sweep that the page offers, equal to `MOST_POINTS` in web/src/sweep.ts."""


def page() -> Path:
    """The page's file.

    Raises:
        NarrowsError: if this package has none.
    """
    if not PAGE.is_file():
        raise NarrowsError(
            "found no playground page in this package, expected a package from a release; in a clone, run "
            "`make web`"
        )
    return PAGE


def fragment(text: str) -> str:
    """The part of the page's address that contains a scenario."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(text.encode()) + packer.flush()
    return f"#s={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def checked(path: Path) -> str:
    """The text of a scenario that the page can run, from its file or from a folder of results.

    Raises:
        ScenarioError: if the scenario is not valid, or if it needs files or controllers that the page lacks.
        OutputError: if a folder has no results.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        load(path)  # raises the line about a missing or unreadable file
        raise
    if stat.S_ISDIR(mode):
        written = scenario_text(Results.read(path).metadata)
        if written is None:
            raise OutputError(f"{path}: found no scenario in the results, expected one")
        text = written
    else:
        if not stat.S_ISREG(mode):
            # The file is read twice, and a pipe can be read only once.
            raise ScenarioError("found no regular file, expected a scenario or a folder", "", str(path))
        load(path)  # errors about the file itself
        text = path.read_text(encoding="utf-8")
    check(text, str(path))
    return text


def check(text: str, source: str) -> None:
    """Check that the page can run a scenario.

    Raises:
        ScenarioError: one line, as the page would print it.
    """
    if (length := len(text.encode())) > MOST_BYTES:
        raise ScenarioError(
            f"found {length} bytes, expected at most {MOST_BYTES}, because the page's address contains the "
            "scenario",
            "",
            source,
        )
    try:
        _native.check_for_page(text, source, MOST_POINTS)
    except ValueError as error:
        message = str(error).removeprefix(f"{source}: ").replace("this program", "the page")
        raise ScenarioError(message, "", source) from None


def address(text: str) -> str | None:
    """The address of the page with a scenario; None if there is no page."""
    return PAGE.as_uri() + fragment(text) if PAGE.is_file() else None


def redirect(address: str) -> str:
    """A small page that leads to an address with a fragment.

    Programs that open a file in the default browser, e.g. `xdg-open`, drop the fragment of its address. Also,
    Linux limits an argument of a program to 128 KiB. A script in a page has neither limit.
    """
    target = json.dumps(address).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Narrows playground</title>\n'
        f"<script>location.replace({target})</script>\n"
        f'<p><a href="{html.escape(address)}">Open the playground</a></p>\n</html>\n'
    )


def write_redirect(address: str) -> Path:
    """Write a page that leads to an address, into the folder for temporary files."""
    number, name = tempfile.mkstemp(prefix="narrows-play-", suffix=".html")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(redirect(address))
    return Path(name)
