"""Writes the types of the agents' channel into python/narrows/_native.pyi, from their JSON schema.

`python tools/channel_types.py` first regenerates crates/narrows-channel/schema.json from the Rust types. With
`--keep-schema`, it uses the existing schema and does not need cargo. A test of the crate fails if the schema
is outdated. tests/python/test_channel_types.py fails if the Python types are outdated.
"""

import argparse
import json
import keyword

from plan_types import ROOT, Schema, docstring, formatted, python_type, write_schema

SCHEMA = ROOT / "crates/narrows-channel/schema.json"
STUB = ROOT / "python/narrows/_native.pyi"
BEGIN = "# tools/channel_types.py writes the types from here\n"
END = "# to here.\n"

READ: dict[str, tuple[str, ...]] = {
    "FlowKey": ("saddr", "daddr", "sport", "dport", "proto"),
    "FlowInfo": ("key", "class", "leaf", "allocation", "rate", "rtt"),
    "PortInfo": ("port", "interface", "mac", "capacity", "rate_controller"),
    "Ports": ("ports",),
    "Flows": ("port", "flows"),
    "FlowChanges": ("port",),
}
"""The types and fields that Python reads. Other types and fields are read only in Rust."""


def text(schema: Schema) -> str:
    """The Python types."""
    defined: dict[str, Schema] = schema["$defs"]
    return "\n".join(_class(name, fields, defined) for name, fields in READ.items())


def into(stub: str, schema: Schema) -> str:
    """The text of the stub, with its generated types replaced."""
    before, _, rest = stub.partition(BEGIN)
    _, _, after = rest.partition(END)
    return formatted(f"{before}{BEGIN}\n{text(schema)}\n{END}{after}", STUB)


def _class(name: str, fields: tuple[str, ...], defined: dict[str, Schema]) -> str:
    properties = defined[name]["properties"]
    lines = [f"class {name}:", docstring(defined[name]["description"], "    ")]
    for field in fields:
        attribute = f"{field}_" if keyword.iskeyword(field) else field
        type_ = python_type(_plain(properties[field], defined))
        lines += [
            "    @property",
            f"    def {attribute}(self) -> {type_}:",
            docstring(properties[field]["description"], "        "),
        ]
    return "\n".join(lines)


def _plain(schema: Schema, defined: dict[str, Schema]) -> Schema:
    """The schema, with references to types outside of `READ` replaced by their definitions."""
    match schema:
        case {"$ref": str(reference)} if (name := reference.rpartition("/")[2]) not in READ:
            return _plain(defined[name], defined)
        case {"anyOf": list(options), **rest} if "type" not in rest:
            return {"anyOf": [_plain(option, defined) for option in options]}
    return schema


def main() -> None:
    """Write the schema and the types."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep-schema", action="store_true", help="take the schema as it is")
    if not parser.parse_args().keep_schema:
        write_schema("narrows-channel", "channel_schema", SCHEMA)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    STUB.write_text(into(STUB.read_text(encoding="utf-8"), schema), encoding="utf-8")


if __name__ == "__main__":
    main()
