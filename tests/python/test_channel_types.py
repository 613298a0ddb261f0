"""The generated JSON schema and Python types of the agents' channel are current."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "crates/narrows-channel/schema.json").read_text(encoding="utf-8"))
native = pytest.importorskip("narrows._native")

sys.path.append(str(ROOT / "tools"))
sys.path.append(str(ROOT / "tests/python/controller"))
import channel_types  # noqa: E402
import fake_agent  # noqa: E402

BODIES = [
    {"type": "ports", "ports": [fake_agent.port_info()]},
    fake_agent.report(),
    fake_agent.advertisement(),
    fake_agent.flow_list(fake_agent.flow()),
]


def test_the_types_are_those_of_the_schema():
    stub = channel_types.STUB.read_text(encoding="utf-8")
    assert stub == channel_types.into(stub, SCHEMA), "run: tools/channel_types.py"


def test_the_objects_have_the_attributes_of_their_types():
    ports, _, _, flows = (native.parse_body(json.dumps(body)) for body in BODIES)
    (flow,), (port,) = flows.flows, ports.ports
    objects = {"FlowKey": flow.key, "FlowInfo": flow, "PortInfo": port, "Ports": ports, "Flows": flows}
    changes = native.parse_body('{"type":"flow-changes","port":1,"changes":[]}')
    objects["FlowChanges"] = changes
    assert {name: {n.rstrip("_") for n in dir(o) if n[0] != "_"} for name, o in objects.items()} == {
        name: set(fields) for name, fields in channel_types.READ.items()
    }
    assert (flow.class_, flow.leaf, flow.key.proto, flow.key.saddr) == (
        "rated",
        "elephant",
        "tcp",
        "10.0.0.1",
    )
    assert (flow.rate, flow.allocation, flow.rtt) == (125_000, None, None)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body["type"])
def test_bodies_follow_the_schema(body):
    jsonschema.validate(body, SCHEMA)
    for key in body:
        spoilt = {**body, key: None}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, SCHEMA)
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            native.parse_body(json.dumps(spoilt))
