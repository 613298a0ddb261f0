"""The mutations of tools/mutations can be planted in the sources, and their test scenarios are valid."""

import importlib.util
import sys
from pathlib import Path

import pytest
from narrows.scenario.load import load

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools/mutations"
spec = importlib.util.spec_from_file_location("planted", TOOL / "planted.py")
planted = importlib.util.module_from_spec(spec)
sys.modules["planted"] = planted
spec.loader.exec_module(planted)
MUTATIONS = planted.read_all()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.id)
def test_the_old_text_of_a_mutation_occurs_once_in_the_sources(mutation):
    source = (ROOT / planted.CONTROLLERS / mutation.file).read_text(encoding="utf-8")
    changed = planted.apply(source, mutation)
    assert changed != source


def test_an_outdated_mutation_is_refused():
    mutation = planted.Mutation("x", "linux/cubic.rs", "beta", "gamma", "")
    with pytest.raises(ValueError, match=r"^x: linux/cubic\.rs: found the old text 2 times, expected once$"):
        planted.apply("beta beta", mutation)


def test_there_are_twenty_different_mutations():
    assert len({(item.file, item.old) for item in MUTATIONS}) == len({item.id for item in MUTATIONS}) == 20


def test_the_suite_has_ten_valid_scenarios_whose_seeds_differ():
    paths = sorted((TOOL / "suite").glob("*.toml"))
    assert len(paths) == 10
    for path in paths:
        scenario = load(path)
        assert {"jitter", "loss"} & scenario.raw()["topology"].keys()
