"""Builds the playground: the simulator as WebAssembly, and the page that runs it, as one file.

    python tools/web.py            build target/web/narrows-play.html
    python tools/web.py --engine   build only the engine, target/web/engine

The script needs rustup (for the target wasm32-unknown-unknown), Node.js and npm.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "wasm32-unknown-unknown"
WEB = ROOT / "web"


class Unavailable(Exception):  # noqa: N818 (a state of the machine, not an error of the page)
    """The machine lacks a program that the build needs."""


def built() -> Path:
    """The folder for builds, as cargo's target folder."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def page() -> Path:
    """The finished page."""
    return built() / "web" / "narrows-play.html"


def call(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a program. Its output goes to the terminal."""
    if shutil.which(str(command[0])) is None:
        raise Unavailable(f"{command[0]} not found")
    subprocess.run([str(word) for word in command], cwd=folder, check=True)


def engine() -> Path:
    """Build the engine, and return its folder."""
    if shutil.which("rustup") is not None:
        call("rustup", "--quiet", "target", "add", TARGET)
    call("cargo", "build", "--locked", "--quiet", "-p", "narrows-web", "--target", TARGET, "--profile", "web")
    module = built() / TARGET / "web" / "narrows_web.wasm"
    folder = built() / "web" / "engine"
    # Its own folder, so that a change of the workspace's options does not build this program again.
    where = ("--manifest-path", "tools/bindgen/Cargo.toml", "--target-dir", built() / "tools")
    call("cargo", "run", "--locked", "--quiet", *where, module, folder)
    return folder


def build() -> Path:
    """Build the engine and the page, and return the page's file."""
    folder = engine()
    call("npm", "ci", "--no-audit", "--no-fund", "--silent", folder=WEB)
    call("node", "build.mjs", folder, page(), folder=WEB)
    return page()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", action="store_true", help="build only the engine")
    chosen = parser.parse_args()
    try:
        if chosen.engine:
            print(engine())
            return
        made = build()
    except Unavailable as missing:
        sys.exit(f"web: {missing}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"web: {' '.join(map(str, error.cmd[:3]))} failed")
    size = len(gzip.compress(made.read_bytes(), 9))
    print(f"{made}: {size / 1000:.0f} kB compressed")


if __name__ == "__main__":
    main()
