"""Writes python/narrows/plan.py, the plan as Python types, from crates/narrows-plan/schema.json.

`python tools/plan_types.py` first regenerates the schema from the crate's Rust types. With `--keep-schema`,
it uses the existing schema and does not need cargo. A test of the crate fails if the schema is outdated.
tests/python/test_plan.py fails if the Python types are outdated.
"""

import argparse
import json
import keyword
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "crates/narrows-plan/schema.json"
TYPES = ROOT / "python/narrows/plan.py"

HEADER = '''\
"""The input of a run, fully resolved: names are indices, times ns, rates L3 bytes/s, sizes bytes.

`tools/plan_types.py` generates this file from the types of `crates/narrows-plan`. Do not edit it.
The crate has a default for each key that is not required.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict
'''

WIDTH = 110
"""Longest line, in characters."""

Schema = dict[str, Any]

_PLAIN = {"boolean": "bool", "integer": "int", "null": "None", "number": "float", "string": "str"}


def text(schema: Schema) -> str:
    """The Python module for a schema."""
    root = {key: value for key, value in schema.items() if key != "$defs"}
    defined: dict[str, Schema] = {**schema["$defs"], schema["title"]: root}
    # A name must be defined before an alias uses it, so simple types come first and unions come last.
    plain, classes, unions = [], [], []
    for name, inner in defined.items():
        if _is_plain(inner):
            plain.append(_alias(name, python_type(inner), inner))
        elif "oneOf" in inner:
            variants = {_variant(name, variant): variant for variant in inner["oneOf"]}
            classes += [_class(variant, described) for variant, described in variants.items()]
            unions.append(_alias(name, " | ".join(variants), inner))
        else:
            classes.append(_class(name, inner))
    return formatted("\n".join([HEADER, *plain, *classes, *unions]), TYPES)


def _is_plain(schema: Schema) -> bool:
    """Whether a definition is a simple value or a set of constants."""
    return schema.get("type") in _PLAIN or all("const" in variant for variant in schema.get("oneOf", [{}]))


def _variant(union: str, schema: Schema) -> str:
    """The class name of a variant, e.g. `FqCodelQueuePlan` for the kind `fq-codel` of `QueuePlan`."""
    return "".join(word.capitalize() for word in schema["properties"]["kind"]["const"].split("-")) + union


def python_type(schema: Schema) -> str:
    """The Python type of a value.

    Raises:
        ValueError: for a schema that this function does not support.
    """
    match schema:
        case {"$ref": reference}:
            return str(reference).rpartition("/")[2]
        case {"const": str(value)}:
            return f'Literal["{value}"]'
        case {"oneOf": [{"const": _}, *_] as words}:
            return f"Literal[{', '.join(json.dumps(word['const']) for word in words)}]"
        case {"anyOf": options}:
            return " | ".join(python_type(option) for option in options)
        case {"type": list(types)}:
            return " | ".join(python_type({**schema, "type": one}) for one in types)
        case {"type": "array", "prefixItems": items}:
            return f"tuple[{', '.join(python_type(item) for item in items)}]"
        case {"type": "array", "items": item}:
            return f"list[{python_type(item)}]"
        case {"type": "object", "additionalProperties": True}:
            return "dict[str, object]"
        case {"type": "object", "additionalProperties": dict(item)}:
            return f"dict[str, {python_type(item)}]"
        case {"type": str(name)} if name in _PLAIN:
            return _PLAIN[name]
    raise ValueError(f"no Python type for {schema}")


def _alias(name: str, type_: str, schema: Schema) -> str:
    return f"{name}: TypeAlias = {type_}\n{docstring(schema['description'])}"


def _class(name: str, schema: Schema) -> str:
    """A TypedDict. Its base class has the keys that are reserved words, which a class body cannot define."""
    properties, required = schema["properties"], schema.get("required", ())
    types = {
        key: python_type(inner) if key in required else f"NotRequired[{python_type(inner)}]"
        for key, inner in properties.items()
    }
    reserved = [key for key in types if keyword.iskeyword(key)]
    before, base = "", "TypedDict"
    if reserved:
        base = f"_{name}"
        # The types are quoted, because the call of TypedDict evaluates its arguments immediately.
        keys = "".join(f'"{key}": "{types[key]}",' for key in reserved)
        meanings = " ".join(f"`{key}`: {properties[key]['description']}" for key in reserved)
        before = f'{base} = TypedDict("{base}", {{{keys}}})\n{docstring(meanings)}\n'
    summary, _, rest = " ".join(schema["description"].split()).partition(". ")
    summary = summary.removesuffix(".") + "."
    lines = [f"class {name}({base}):", docstring(f"{summary}\n\n{rest}" if rest else summary, "    "), ""]
    for key, type_ in types.items():
        if key not in reserved:
            lines.append(f"    {key}: {type_}")
            if "description" in properties[key]:
                lines.append(docstring(properties[key]["description"], "    "))
    return before + "\n".join(lines)


def docstring(meaning: str, indent: str = "") -> str:
    """Formats a text as a docstring."""
    paragraphs = [
        textwrap.fill(" ".join(paragraph.split()), WIDTH - 6 - len(indent), break_on_hyphens=False)
        for paragraph in meaning.split("\n\n")
    ]
    body = "\n\n".join(paragraphs)
    end = "\n" if len(paragraphs) > 1 else ""
    return textwrap.indent(f'"""{body}{end}"""', indent)


def formatted(source: str, file: Path) -> str:
    """Formats source code as ruff would format it in `file`."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(file), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def write_schema(crate: str, example: str, file: Path) -> None:
    """Write the schema that an example of a crate prints."""
    done = subprocess.run(
        ["cargo", "run", "--quiet", "--locked", "-p", crate, "--example", example, "--features", "schema"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    file.write_text(done.stdout, encoding="utf-8")


def main() -> None:
    """Write the schema and the types."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep-schema", action="store_true", help="take the schema as it is")
    if not parser.parse_args().keep_schema:
        write_schema("narrows-plan", "schema", SCHEMA)
    TYPES.write_text(text(json.loads(SCHEMA.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
