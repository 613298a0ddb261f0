"""Writes the generated parts of documents."""

from pathlib import Path

from run import BenchError

DOCS = Path(__file__).resolve().parent.parent / "docs"


def fill(document: str, name: str, text: str) -> None:
    """Replaces a generated part of a document of docs/."""
    path = DOCS / document
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise BenchError(f"{document} has no {begin} and {end}")
    path.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")
