"""The measures that a user asks for: `goodput`, or `rtt:statistic=p95,flows=web*`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from narrows.errors import NarrowsError, ScenarioError, one_of
from narrows.results.measures import MEASURES, Measure, arguments

_BETWEEN = re.compile(r",(?=\s*\w+\s*=)")
"""The comma between two arguments. It is followed by `name =`, unlike a comma inside a value."""


@dataclass(frozen=True)
class Ask:
    """A measure with arguments."""

    measure: Measure
    args: Mapping[str, Any]

    @property
    def of_each(self) -> str:
        """The argument that the user left out: `flows` or `link` (empty: neither was left out).

        This argument is set to each flow or link in turn.
        """
        free = [
            name for name in ("flows", "link") if name in arguments(self.measure) and name not in self.args
        ]
        return free[-1] if free else ""

    @property
    def title(self) -> str:
        """The measure's title with its arguments."""
        shown = ", ".join(f"{name} {value}" for name, value in self.args.items())
        return f"{self.measure.title} ({shown})" if shown else self.measure.title


def parse_ask(text: str) -> Ask:
    """The measure in a text such as ``rtt:statistic=p95``. A value is TOML, or a string without quotes.

    Raises:
        NarrowsError: for an unknown measure, or an unknown or missing argument.
    """
    name, _, rest = text.partition(":")
    place = "--measure"
    if name not in MEASURES:
        raise NarrowsError(f"{place}: {one_of(name, MEASURES, 'a measure', 'measures')}")
    args: dict[str, Any] = {}
    for part in _BETWEEN.split(rest) if rest else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise NarrowsError(f"{place}: found {part!r}, expected ARGUMENT=VALUE")
        try:
            args[key.strip()] = tomllib.loads(f"v = {value}")["v"]
        except (ValueError, RecursionError):
            args[key.strip()] = value.strip()
    ask = Ask(MEASURES[name], args)
    filled = {**args, "link": ""} if ask.of_each == "link" else args
    try:
        ask.measure.check(filled)
    except ScenarioError as error:
        raise NarrowsError(f"{place} {name}: {error}") from None
    return ask
