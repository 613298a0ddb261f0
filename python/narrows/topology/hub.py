"""Networks of the package topohub: Topology Zoo, SNDlib, CAIDA, Gabriel graphs and backbones.

The package has lengths in km and SNDlib's demands, but no capacities. Only names with a slash need the
package.
"""

from __future__ import annotations

import functools
import importlib.resources
import importlib.util
import re
from collections import Counter
from typing import Any

from narrows.topology.facts import Demand, Edge, Facts

_LONGEST = 48
"""Maximum length of a node's name in characters. Names are short, because the name of an access link contains
two node names."""


def installed() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec("topohub") is not None


@functools.cache
def names() -> tuple[str, ...]:
    """Every network of the package, such as ``topozoo/Abilene``; none if the package is missing."""
    if not installed():
        return ()
    found: list[str] = []
    waiting = [("", importlib.resources.files("topohub").joinpath("data"))]
    while waiting:
        path, folder = waiting.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                waiting.append((f"{path}{entry.name}/", entry))
            elif entry.name.endswith(".json"):
                found.append(path + entry.name.removesuffix(".json"))
    return tuple(sorted(found))


def read(name: str) -> Facts:
    """The network with this name, which is one of `names`."""
    import topohub  # noqa: PLC0415 (optional)

    return facts(name, topohub.get(name))


def facts(name: str, data: dict[str, Any]) -> Facts:
    """A network in node-link form.

    A node without a name is called `n`, followed by its number. If several nodes have the same name, each
    gets its number as a suffix.
    """
    raw = {str(node["id"]): _plain(str(node.get("name") or "")) for node in data["nodes"]}
    shared = Counter(raw.values())
    called = {
        id_: f"n{id_}" if not plain else plain if shared[plain] == 1 else f"{plain}-{id_}"
        for id_, plain in raw.items()
    }
    edges = [
        Edge(called[str(edge["source"])], called[str(edge["target"])], float(edge.get("dist") or 0.0))
        for edge in data["edges"]
        if edge["source"] != edge["target"]
    ]
    positions = {
        called[str(node["id"])]: (float(node["pos"][0]), float(node["pos"][1]))
        for node in data["nodes"]
        if node.get("pos")
    }
    demands = [
        Demand(called[str(source)], called[str(to)], float(mbit))
        for source, row in (data.get("graph", {}).get("demands") or {}).items()
        for to, mbit in row.items()
    ]
    return Facts(name, list(called.values()), edges, positions, True, demands=demands)


def _plain(name: str) -> str:
    """The name, written only with characters that a scenario permits."""
    joined = re.sub(r"\s+", "_", name.strip())
    return "".join(c for c in joined if c.isprintable())[:_LONGEST]
