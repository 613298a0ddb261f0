"""Installs the Python dependencies, pinned by constraints.txt, that pyproject.toml names; no more, no less."""

import subprocess
import sys
import tomllib
from pathlib import Path

root = Path(__file__).resolve().parent.parent
project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
command = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(root / "constraints.txt"), *wanted]
sys.exit(subprocess.call(command))
