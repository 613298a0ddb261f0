"""The JSON schema of scenario files, made from the models; `schema.json` is its printed form."""

from __future__ import annotations

import json
from pathlib import Path

from narrows.scenario.model import Scenario

FILE = Path(__file__).with_name("schema.json")


def text() -> str:
    """The schema as printed."""
    schema = Scenario.model_json_schema(by_alias=True, mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Narrows scenario"
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
