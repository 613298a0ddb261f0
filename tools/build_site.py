"""Builds the documentation site from docs/ into site/.

    python tools/build_site.py              # with the crates' documentation, if cargo is installed
    python tools/build_site.py --no-rust    # without the crates' documentation

Every page must be reachable from docs/index.md: the home page links to the index of each section, and the
index of a section links to its pages. The navigation follows the order of these links. A Markdown file
outside of docs/, e.g. LIMITATIONS.md, also becomes a page if the index of a section links to it. All other
links out of docs/ lead to the source on the web.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import typer
from narrows import playground
from narrows.cli.main import app
from narrows.errors import ScenarioError
from typer.cli import get_docs_for_click

import web

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CRATES = ("narrows-control", "narrows-plan", "narrows-sim")
"""Crates whose rustdoc is part of the site. Links to their folders lead to their rustdoc."""
COMMANDS = "<!-- commands -->"
"""The place in a page where the reference of the command line is inserted."""
PAGE = '{% extends "base.html" %}{% block libs %}{% endblock %}\n'
"""The template of all pages. It leaves out a script that the generator loads from a public server."""
BLOB_WORKER = """
window.Worker = class extends Worker {
  constructor() {
    super(URL.createObjectURL(new Blob([%s], { type: "text/javascript" })));
  }
};
"""
"""A script that starts the search worker from the worker's source text, because browsers do not start workers
from file:// addresses.
"""

EMBED = ROOT / "tools" / "site"
"""The script and the style that run examples in place."""
PLAYGROUND = playground.PAGE.name
"""The playground's path in the site."""
_EXAMPLE = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
_CODE = re.compile(r"^(`{3,}).*?^\1`*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


class SiteError(Exception):
    """The pages do not form a valid site. The message is one line with the reason."""


@dataclass
class Section:
    """A folder of the site: its index page, and its pages and folders in the order of the index."""

    index: Path
    parts: "list[Path | Section]" = field(default_factory=list)

    def pages(self) -> Iterator[Path]:
        """The index, and all pages of this section and of the sections in it."""
        yield self.index
        for part in self.parts:
            if isinstance(part, Section):
                yield from part.pages()
            else:
                yield part


def links(text: str) -> list[str]:
    """Targets of the links of a page, in order. Links in code are left out."""
    return [match[2] for match in _LINK.finditer(_CODE.sub("", text))]


def contents() -> Section:
    """The tree of pages that can be reached by links from the home page."""
    home = _section(DOCS / "index.md")
    if missing := sorted(set(DOCS.rglob("*.md")) - set(home.pages())):
        raise SiteError(f"{missing[0].relative_to(ROOT)}: no index page links to it")
    return home


def _section(index: Path) -> Section:
    section = Section(index)
    for target in links(index.read_text(encoding="utf-8")):
        path = target.partition("#")[0]
        page = (index.parent / path).resolve()
        if not path.endswith(".md") or "://" in path or page in section.parts:
            continue
        if not page.exists():
            raise SiteError(f"{index.relative_to(ROOT)}: {path} does not exist")
        if page.name == "index.md" and page.parent.parent == index.parent:
            section.parts.append(_section(page))
        elif page.parent == index.parent or not page.is_relative_to(DOCS):
            section.parts.append(page)
    return section


def places(section: Section) -> dict[Path, PurePosixPath]:
    """For each source file, its path in the site."""
    folder = PurePosixPath(section.index.parent.relative_to(DOCS).as_posix())
    where = {section.index: folder / "index.md"}
    for part in section.parts:
        if isinstance(part, Section):
            where |= places(part)
        else:
            name = part.stem if part.is_relative_to(DOCS) else part.stem.lower()
            where[part] = folder / f"{part.parent.name if name == 'readme' else name}.md"
    return where


def navigation(section: Section, where: dict[Path, PurePosixPath]) -> list[Any]:
    """The section as an entry of the generator's navigation."""
    entries: list[Any] = [where[section.index].as_posix()]
    for part in section.parts:
        if isinstance(part, Section):
            entries.append({_title(part.index): navigation(part, where)})
        else:
            entries.append(where[part].as_posix())
    return entries


class Pages:
    """Rewrites links for the site."""

    def __init__(self, where: dict[Path, PurePosixPath], source: str, with_rust: bool) -> None:
        """Takes the pages' paths in the site, the repository's address, and whether the site has rustdoc."""
        self.where = where
        self.source = source
        self.with_rust = with_rust

    def rewritten(self, page: Path) -> str:
        """The page's text, with its links replaced by the site's links."""
        text = page.read_text(encoding="utf-8")
        kept = 0
        parts = []
        for code in _CODE.finditer(text):
            parts += [self._rewrite(text[kept : code.start()], page), code[0]]
            kept = code.end()
        return "".join([*parts, self._rewrite(text[kept:], page)])

    def _rewrite(self, text: str, page: Path) -> str:
        return _LINK.sub(lambda match: match[1] + self._target(match[2], page) + match[3], text)

    def _target(self, target: str, page: Path) -> str:
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return target
        file = (page.parent / path).resolve()
        here = self.where[page].parent
        if file in self.where:
            return _relative(self.where[file], here) + hash_ + anchor
        if not file.exists():
            raise SiteError(f"{page.relative_to(ROOT)}: {target} does not exist")
        if file.is_relative_to(DOCS):
            return _relative(PurePosixPath(file.relative_to(DOCS).as_posix()), here) + hash_ + anchor
        name = file.relative_to(ROOT)
        if self.with_rust and name.parent.as_posix() == "crates" and name.name in CRATES:
            return _relative(PurePosixPath(f"rust/{name.name.replace('-', '_')}/index.html"), here)
        kind = "tree" if file.is_dir() else "blob"
        return f"{self.source}/{kind}/main/{name.as_posix()}{hash_}{anchor}"


def _relative(to: PurePosixPath, folder: PurePosixPath) -> str:
    return PurePosixPath(os.path.relpath(to, folder)).as_posix()


def commands() -> str:
    """The reference of the command line in Markdown, generated from the commands."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(
        obj=command, ctx=command.context_class(command), name="narrows", title="narrows"
    )
    # Lower each heading by one level, because the page already has a title.
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in text.splitlines())


def with_examples(text: str, place: PurePosixPath) -> str:
    """The text of a page, with a link to the playground below each scenario that the playground can run.

    Other examples, e.g. parts of scenarios, get no link.
    """
    to = _relative(PurePosixPath(PLAYGROUND), place.parent)

    def linked(example: re.Match[str]) -> str:
        try:
            playground.check(example[1], "example")
        except ScenarioError:
            return example[0]
        # The link is HTML. The generator would take the fragment of a Markdown link for a heading.
        target = f"{to}{playground.fragment(example[1])}"
        link = f'<a class="play" href="{target}" aria-expanded="false">Run this scenario in your browser</a>'
        return f"{example[0]}\n\n<p>{link}</p>"

    return _EXAMPLE.sub(linked, text)


def stage(folder: Path, out: Path, with_rust: bool, with_playground: bool) -> Path:
    """Writes pages and configuration for the generator; returns the configuration's path."""
    home = contents()
    where = places(home)
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project["urls"]["Source"]
    pages = Pages(where, source, with_rust)
    for page, place in where.items():
        target = folder / "docs" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = pages.rewritten(page)
        if COMMANDS in text:
            text = text.replace(COMMANDS, commands())
        if with_playground:
            text = with_examples(text, place)
        target.write_text(text, encoding="utf-8")
    for file in DOCS.rglob("*"):
        if file.is_file() and file.suffix != ".md":
            target = folder / "docs" / file.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    site = config["project"]
    site |= {
        "nav": navigation(home, where),
        "docs_dir": "docs",
        "site_dir": str(out),
        "site_url": project["urls"]["Documentation"],
    }
    # `repo_url` is not set. If it were set, each page would ask GitHub for the number of stars.
    site["extra"] = {"social": [{"icon": "fontawesome/brands/github", "link": source, "name": "Source"}]}
    if with_playground:
        for file in EMBED.iterdir():
            shutil.copyfile(file, folder / "docs" / file.name)
        site |= {"extra_javascript": ["play.js"], "extra_css": ["play.css"]}
    site["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "python")]
    site["theme"]["custom_dir"] = "overrides"
    (folder / "overrides").mkdir()
    (folder / "overrides/main.html").write_text(PAGE, encoding="utf-8")
    # The generator reads YAML. JSON is valid YAML, and Python can write it without another library.
    path = folder / "mkdocs.yml"
    path.write_text(json.dumps(site), encoding="utf-8")
    return path


def _title(page: Path) -> str:
    title = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    if title is None:
        raise SiteError(f"{page.relative_to(ROOT)}: has no title")
    return title[1]


def search_from_files(out: Path) -> None:
    """Makes search work without a server.

    A page from the file system first loads the search index from search.js, and then starts the search
    worker. This function appends a script to search.js, so that the worker can start without a server.
    """
    (worker,) = out.glob("assets/javascripts/workers/search.*.js")
    with (out / "search.js").open("a", encoding="utf-8") as index:
        index.write(BLOB_WORKER % json.dumps(worker.read_text(encoding="utf-8")))


def rustdoc(out: Path) -> None:
    """Puts the documentation of the crates in `CRATES` into the folder rust/ of the site."""
    packages = [word for crate in CRATES for word in ("--package", crate)]
    # Use a separate folder, because target/doc may also contain the documentation of other crates.
    target = ROOT / "target/rustdoc"
    command = ["cargo", "doc", "--no-deps", "--locked", "--quiet", "--all-features"]
    command += ["--target-dir", str(target), *packages]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise SiteError("cargo doc failed (above)")
    shutil.copytree(target / "doc", out / "rust")


def build(out: Path, with_rust: bool) -> None:
    """Builds the site. Replaces an earlier site only when the new site is complete."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch, "site")
        page = web.page()
        config = stage(Path(scratch), fresh, with_rust, page.exists())
        generator = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(config)]
        done = subprocess.run(generator, cwd=scratch, check=False)
        if done.returncode:
            raise SiteError("the generator found faults in the pages (above)")
        search_from_files(fresh)
        if page.exists():
            shutil.copyfile(page, fresh / PLAYGROUND)
        else:
            print(f"no {page}: the site is built without the playground (make web)", file=sys.stderr)
        if with_rust:
            rustdoc(fresh)
        if out.exists():
            shutil.rmtree(out)
        shutil.move(fresh, out)


def main() -> int:
    """Build the site as the command line asks."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="folder to write (default: site)")
    parser.add_argument("--no-rust", action="store_true", help="leave out the crates' documentation")
    arguments = parser.parse_args()
    with_rust = not arguments.no_rust
    if with_rust and shutil.which("cargo") is None:
        print("no cargo: the site is built without the crates' documentation", file=sys.stderr)
        with_rust = False
    try:
        build(arguments.out.resolve(), with_rust)
    except SiteError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    print(f"site: {arguments.out}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
