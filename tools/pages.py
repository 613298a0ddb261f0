"""Generated parts of docs/: the text between `<!-- name: begin -->` and `<!-- name: end -->`."""


def fill(text: str, name: str, part: str) -> str:
    """The page, with the text of one generated part replaced.

    Raises:
        ValueError: if the page has no part of that name.
    """
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page has no place for {name!r}")
    return f"{head}{begin}\n{part}\n{end}{tail}"
