"""Networks by name."""

from __future__ import annotations

import functools
from collections.abc import Callable

from narrows import extras
from narrows.errors import ScenarioError, found, hint
from narrows.topology import abilene, fat_tree, gfc, hub
from narrows.topology.facts import Facts

OWN: dict[str, Callable[[], Facts]] = {
    "abilene": abilene.abilene,
    "abilene-zoo": abilene.abilene_zoo,
    "gfc-1": gfc.gfc_1,
    "gfc-2": gfc.gfc_2,
}
"""Networks that need no other package and no parameter."""
FAT_TREE = "fat-tree"
"""Name of the only network that has a parameter."""


@functools.lru_cache(maxsize=16)
def find(name: str, k: int | None) -> Facts:
    """The network of this name; `k` is the parameter of the fat tree.

    Raises:
        ScenarioError: if `name` or `k` is wrong. The error has the key in the table [topology]. Its message
            names the most similar network, or says that topohub is missing.
    """
    if name == FAT_TREE:
        if k is None:
            raise ScenarioError("found nothing, expected this key with the fat tree", "k")
        return fat_tree.fat_tree(k)
    if k is not None:
        raise ScenarioError(f"found {k}, expected this key only with name = {FAT_TREE!r}", "k")
    if name in OWN:
        return OWN[name]()
    if name in hub.names():
        return hub.read(name)
    if "/" in name and not hub.installed():
        raise ScenarioError(
            f"found {found(name)}, a network of the package topohub; try: {extras.remedy('topologies')}",
            "name",
        )
    known = [*OWN, FAT_TREE, *hub.names()]
    raise ScenarioError(
        f"found {found(name)}, expected a network{hint(name, known, listing='networks')}", "name"
    )
