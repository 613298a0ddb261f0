"""Installs the Python dependencies that pyproject.toml names, pinned by constraints.txt."""

import subprocess
import sys
import tomllib
from pathlib import Path

root = Path(__file__).resolve().parent.parent
project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
sys.exit(subprocess.call([*pip, "--constraint", str(root / "constraints.txt"), *wanted]))
