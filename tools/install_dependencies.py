"""Installs the Python dependencies of pyproject.toml, pinned by constraints.txt."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWN_EXTRAS = re.compile(r"narrows\[([\w,-]+)\]")


def requirements(extra: str) -> list[str]:
    """The requirements of an extra. Other extras of this project are replaced by their requirements."""
    wanted: list[str] = []
    for requirement in PROJECT["optional-dependencies"][extra]:
        if own := OWN_EXTRAS.fullmatch(requirement):
            wanted += [each for name in own[1].split(",") for each in requirements(name)]
        else:
            wanted.append(requirement)
    return wanted


if __name__ == "__main__":
    # Compiling all modules now would waste time. Python compiles a module at its first import, and most of
    # these modules are never imported.
    options = ["--quiet", "--no-compile", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options]
    wanted = [*PROJECT["dependencies"], *requirements("dev")]
    sys.exit(subprocess.call([*pip, "--constraint", str(ROOT / "constraints.txt"), *wanted]))
