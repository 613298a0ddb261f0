"""The generated JSON schema and Python types of the plan are current."""

import json
import sys
from pathlib import Path
from typing import get_type_hints

import jsonschema
import pytest
from narrows import plan as types
from narrows.scenario import load
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "crates/narrows-plan/schema.json").read_text(encoding="utf-8"))
SCENARIOS = sorted((ROOT / "scenarios").rglob("*.toml"))

sys.path.insert(0, str(ROOT / "tools"))
import plan_types  # noqa: E402


def test_the_types_are_current():
    assert plan_types.TYPES.read_text(encoding="utf-8") == plan_types.text(SCHEMA), "run: tools/plan_types.py"


def test_each_object_of_the_schema_has_a_type_with_its_keys():
    objects = {"Plan": SCHEMA} | {k: v for k, v in SCHEMA["$defs"].items() if "properties" in v}
    for name, schema in objects.items():
        type_ = getattr(types, name)
        assert set(get_type_hints(type_)) == set(schema["properties"])
        assert type_.__required_keys__ <= set(schema["properties"])


def test_the_generator_refuses_a_value_that_it_does_not_know():
    schema = {"title": "T", "$defs": {}, "description": "T.", "properties": {"a": {"type": "odd"}}}
    with pytest.raises(ValueError, match="no Python type"):
        plan_types.text(schema)


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_a_scenarios_plan_follows_the_schema(file):
    # The validator needs lists. A conversion to JSON and back replaces tuples by lists.
    made = json.loads(json.dumps(resolve(load.load(file))))
    jsonschema.validate(made, SCHEMA)
