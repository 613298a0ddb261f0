"""Scenarios of results as TOML, for the playground."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomli_w


def scenario_text(metadata: Mapping[str, Any]) -> str | None:
    """The scenario of results as TOML, with all keys that the results record; None if they record none."""
    scenario = metadata.get("scenario")
    if not isinstance(scenario, dict) or not scenario.get("flows"):
        return None
    return tomli_w.dumps(scenario)
