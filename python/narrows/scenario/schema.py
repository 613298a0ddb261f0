"""The JSON schema of scenario files, and the reference of their keys. Both describe all controllers."""

from __future__ import annotations

import json
from pathlib import Path

from narrows import _native

FILE = Path(__file__).with_name("schema.json")
"""The schema in the package, for editors and for completion."""


def text() -> str:
    """The JSON schema. Editors complete and check scenario files with it."""
    schema = json.loads(_native.scenario_schema())
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def markdown() -> str:
    """The generated part of the scenario reference, as Markdown."""
    return _native.scenario_reference()
