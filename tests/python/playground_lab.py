"""The playground in a browser, for the tests of its page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DONE = "#progress[data-complete=true]"
TEXT = "document.querySelector('#toml').value"
TWO_FLOWS = """
duration = "4s"

[topology]
kind = "dumbbell"
rate = "10mbit" # a comment that edits keep
rtt = "20ms"
queue = "1bdp"

[[flows]]
cc = "cubic"

[[flows]]
cc = "reno"
start = "1s"
"""


@contextmanager
def opened(
    browser: Any, built: Path, width: int = 1280, theme: str = "light", fragment: str = ""
) -> Iterator[Any]:
    """The page after its first run. Fails if the page reports an error or requests anything."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = context.new_page()
    troubles: list[str] = []
    requests: list[str] = []
    page.on(
        "console",
        lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(built.as_uri() + fragment)
    page.wait_for_selector(DONE, timeout=60_000)
    yield page
    assert not troubles
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


def write(page: Any, toml: str) -> None:
    """Types a scenario and waits for the end of its run."""
    earlier = page.get_attribute("#progress", "data-run")
    is_new = page.input_value("#toml") != toml
    page.fill("#toml", toml)
    if is_new:
        page.wait_for_selector(f"#progress:not([data-run='{earlier}'])")
    page.wait_for_selector(DONE, timeout=60_000)
    page.wait_for_function("location.hash.length > 3")


def goodputs(page: Any) -> dict[str, float]:
    """Goodput of each flow in the table of results, Mbit/s."""
    rows = page.evaluate(
        """[...document.querySelectorAll('#results tbody tr')].map(row => [
             row.querySelector('th').textContent.trim(),
             row.querySelector('.goodput').firstChild.textContent,
           ])"""
    )
    return {name: float(value) for name, value in rows}


def drag(page: Any, begin: float, end: float) -> None:
    """Drags over the figure of the goodput, between two shares of its width."""
    figure = page.locator("#figure-goodput .u-over")
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    page.mouse.move(box["x"] + begin * box["width"], box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 40, steps=5)
    page.mouse.up()
