"""Builds the artifacts of a release into dist/, with their checksums.

    python tools/release.py               all parts, into an empty dist/
    python tools/release.py sdist deb     these parts only; files of other parts stay in dist/
    python tools/release.py --partial     succeed even if a part cannot be built

The script builds the parts with `make`, and writes the output to target/release-logs. It reports a failed
part in one line. If no parts are named and this machine's wheels were built, the script installs these
wheels into a clean environment and runs them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import clean_install

import web

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
LOGS = ROOT / "target" / "release-logs"
SUMS = "SHA256SUMS"
VERSION = web.WORKSPACE["version"]
CRATES = tuple(
    sorted(
        path.parent.name
        for path in ROOT.glob("crates/*/Cargo.toml")
        if tomllib.loads(path.read_text(encoding="utf-8"))["package"].get("publish", True)
    )
)
"""Crates that go to crates.io."""


class Part(NamedTuple):
    """One kind of artifact."""

    name: str
    targets: tuple[str, ...]
    """Targets of the Makefile that build this part."""
    artifacts: tuple[str, ...]
    """Patterns of the part's files in dist/. Each pattern must match a file."""
    collect: Callable[[], None] | None = None
    """Moves files into dist/ if the targets write them elsewhere."""


def collect_crates() -> None:
    """Pack the crates.

    `make crates` has verified the crates, but keeps its packages in an internal folder of cargo.
    """
    flags = [flag for crate in CRATES for flag in ("--package", crate)]
    command = ["cargo", "package", "--locked", "--allow-dirty", "--no-verify", "--quiet", *flags]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    for crate in CRATES:
        shutil.copy(ROOT / "target" / "package" / f"{crate}-{VERSION}.crate", DIST)


def collect_playground() -> None:
    """Copy the playground's page, and the package for npm."""
    shutil.copy(web.page(), DIST / f"narrows-play-{VERSION}.html")
    shutil.copy(web.package(), DIST)


def collect_docs() -> None:
    """Pack the site."""
    folder = f"narrows-docs-{VERSION}"
    with tarfile.open(DIST / f"{folder}.tar.gz", "w:gz") as archive:
        archive.add(ROOT / "site", folder)


PARTS = (
    Part("wheel-x86_64", ("wheel-x86_64",), (f"narrows-{VERSION}-*x86_64.whl",)),
    Part("wheel-aarch64", ("wheel-aarch64",), (f"narrows-{VERSION}-*aarch64.whl",)),
    Part("sdist", ("sdist-builds",), (f"narrows-{VERSION}.tar.gz",)),
    Part("deb", ("deb",), (f"narrows-agent_{VERSION}*.deb",)),
    Part("agent-wheel", ("agent-wheel",), (f"narrows_agent-{VERSION}-*{platform.machine()}.whl",)),
    Part("agent-aarch64", ("agent-aarch64",), (f"narrows_agent-{VERSION}-*aarch64.whl",)),
    Part("crates", ("crates",), tuple(f"{crate}-{VERSION}.crate" for crate in CRATES), collect_crates),
    Part(
        "playground",
        ("web",),
        (f"narrows-play-{VERSION}.html", f"narrows-web-{VERSION}.tgz"),
        collect_playground,
    ),
    Part("docs", ("web", "docs"), (f"narrows-docs-{VERSION}.tar.gz",), collect_docs),
)


INSTALLED = (f"wheel-{platform.machine()}", "agent-wheel")
"""Parts with the wheels that this machine can install."""


def remove_earlier(part: Part) -> None:
    """Remove all versions of the part's files from dist/, because `build` checks that new files exist."""
    for pattern in part.artifacts:
        # pathlib rejects `**` within a name.
        for path in DIST.glob(pattern.replace(VERSION, "[0-9]*").replace("**", "*")):
            path.unlink()


def build(part: Part) -> str:
    """Build one part; returns the reason of a failure, or an empty text."""
    remove_earlier(part)
    log = LOGS / f"{part.name}.log"
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            ["make", "--no-print-directory", *part.targets],
            cwd=ROOT,
            # NARROWS_RELEASE sets `is_release` in crates/narrows-py. In a release, the keys of the
            # run cache do not contain the hash of the module.
            env={**os.environ, "NARROWS_RELEASE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    if done.returncode:
        return f"{reason(log.read_text(encoding='utf-8', errors='replace'))} ({log.relative_to(ROOT)})"
    if part.collect is not None:
        try:
            part.collect()
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        except subprocess.CalledProcessError as error:
            return reason(error.stderr.decode(errors="replace"))
    for pattern in part.artifacts:
        if not any(DIST.glob(pattern)):
            return f"`make {' '.join(part.targets)}` left no dist/{pattern}"
    return ""


def reason(log: str) -> str:
    """The last error in a log or, if there is none, the last line that is not from make."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("make")]
    errors = [line for line in lines if line.startswith("error")]
    return (errors or lines or ["no output"])[-1]


def checksums() -> list[str]:
    """Write SHA256SUMS of the artifacts of this version, for `sha256sum --check`; returns the lines."""
    files = sorted({path for part in PARTS for pattern in part.artifacts for path in DIST.glob(pattern)})
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    (DIST / SUMS).write_text("".join(f"{line}\n" for line in lines))
    return lines


def main() -> int:
    """Build the chosen parts, and print which artifacts exist and which are missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [part.name for part in PARTS]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--partial", action="store_true", help="succeed even if a part is missing")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in names]:
        parser.error(f"found {unknown[0]!r}, expected one of {', '.join(names)}")
    if not given.parts:
        shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    missing: dict[str, str] = {}
    for part in PARTS:
        if given.parts and part.name not in given.parts:
            continue
        began = time.monotonic()
        failure = build(part)
        print(f"{part.name}: {failure or f'built in {time.monotonic() - began:.0f} s'}", flush=True)
        if failure:
            missing[part.name] = failure
    works = True
    if not given.parts and missing.keys().isdisjoint(INSTALLED):
        failure = clean_install.check_extras(DIST, VERSION, "--constraint", str(ROOT / "constraints.txt"))
        works = not failure
        print(f"installed and run: {failure or 'narrows[kernel,report] works'}", flush=True)
    for line in checksums():
        print(line)
    if not works:
        print(f"release {VERSION}: the wheels of this machine do not work")
    elif missing:
        print(f"release {VERSION}: missing {', '.join(missing)}")
    else:
        print(
            f"release {VERSION}: dist/ is complete" if not given.parts else f"release {VERSION}: parts built"
        )
    return 1 if not works or (missing and not given.partial) else 0


if __name__ == "__main__":
    sys.exit(main())
