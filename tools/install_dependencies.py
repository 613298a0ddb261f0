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
    """The requirements of an extra, and those of the extras of this project that it requires."""
    wanted: list[str] = []
    for requirement in PROJECT["optional-dependencies"][extra]:
        if own := OWN_EXTRAS.fullmatch(requirement):
            wanted += [each for name in own[1].split(",") for each in requirements(name)]
        else:
            wanted.append(requirement)
    return wanted


if __name__ == "__main__":
    # pip does not compile the modules, because most of them are never imported. Python compiles a module when
    # it is first imported.
    options = ["--quiet", "--no-compile", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options]
    wanted = [*PROJECT["dependencies"], *requirements("dev")]
    sys.exit(subprocess.call([*pip, "--constraint", str(ROOT / "constraints.txt"), *wanted]))
