"""No text for users contains a word that the glossary retired."""

import importlib.util
import re
from pathlib import Path

import pytest
import typer
from narrows.cli.main import app
from typer.cli import get_docs_for_click

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/reference/glossary.md"
_ROW = re.compile(r"^\| (?P<word>[^|]+) \| (?P<meaning>[^|]+) \| (?P<retired>[^|]*)\|$", re.MULTILINE)


def rows() -> list[tuple[str, list[str]]]:
    """Each word of the glossary, with the words that it replaces."""
    found = [
        (row["word"], [word.strip("` ") for word in row["retired"].split(", ") if word.strip()])
        for row in _ROW.finditer(GLOSSARY.read_text())
    ]
    return [(word, retired) for word, retired in found if word not in ("word", "---")]


RETIRED = [word for _, words in rows() for word in words]


def texts() -> dict[str, str]:
    """All texts that users read, except the changelog and the glossary."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("studies/*.md"), *ROOT.glob("docs/**/*.md")]
    pages += [*ROOT.glob("crates/*/README.md"), *ROOT.glob("crates/narrows-agent/src/cli/*.rs")]
    pages += [*ROOT.glob("scenarios/**/*.toml"), *ROOT.glob("packaging/examples/*")]
    pages += (ROOT / "python/narrows").glob("**/*.md")
    pages += (ROOT / "python/narrows/studies").glob("**/*.toml")
    pages += [ROOT / "python/narrows/scenario/schema.json"]
    read = {str(page.relative_to(ROOT)): page.read_text() for page in pages if page != GLOSSARY}
    del read["CHANGELOG.md"]
    command = typer.main.get_command(app)
    read["help"] = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="narrows"))
    if importlib.util.find_spec("narrows._native") is not None:
        from narrows import _native

        named = _native.congestion_controllers() + _native.rate_controllers()
        read["list"] = "\n".join(summary for _, summary in named)
    return {place: " ".join(text.split()).lower() for place, text in read.items()}


TEXTS = texts()


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_is_not_used(word: str) -> None:
    pattern = re.compile(rf"(?<!\w){re.escape(word.lower())}")
    assert [place for place, text in TEXTS.items() if pattern.search(text)] == []


def test_the_texts_are_those_that_people_read() -> None:
    assert {"README.md", "docs/reference/scenarios.md", "scenarios/abilene.toml", "help"} <= TEXTS.keys()
    assert "list the names that a scenario may use" in TEXTS["help"]
    assert "[[rate_controllers]]" in TEXTS["docs/reference/scenarios.md"]


def test_each_word_of_the_glossary_has_one_row() -> None:
    words = [word for word, _ in rows()]
    assert len(words) > 30
    assert len(set(words)) == len(words)
    assert not set(words) & set(RETIRED)
    assert {"[[controllers]]", "OpenFlow controller"} <= set(RETIRED)
