"""Sets the project's address in every file of the repository that repeats it.

    python3 tools/address.py    # print the address and the files that repeat it
    python3 tools/address.py https://github.com/OWNER/NAME https://OWNER.github.io/NAME/

`Cargo.toml` states the address: `repository` and `homepage` of the workspace. Texts that are read outside of
the repository, e.g. the README on PyPI, need absolute links, so they repeat the address.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = re.compile(r"https://[^/\s]+/[\w.-]+/[\w.-]+")
SITE = re.compile(r"https://\S+/")


def stated(root: Path) -> tuple[str, str]:
    """The addresses of the repository and of the documentation in `Cargo.toml`."""
    package = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    return package["repository"], package["homepage"]


def team(repository: str) -> str:
    """The prefix of team names in CODEOWNERS, e.g. `@OWNER/`."""
    return f"@{repository.split('/')[3]}/"


def replacements(old: tuple[str, str], new: tuple[str, str]) -> dict[str, str]:
    """For each text that depends on the old addresses, its replacement."""
    return dict(zip((*old, team(old[0])), (*new, team(new[0])), strict=True))


def repeated(root: Path, texts: list[str]) -> list[Path]:
    """Text files in git that contain at least one of these texts."""
    patterns = [word for text in texts for word in ("-e", text)]
    listed = subprocess.run(
        ["git", "grep", "-zIlF", *patterns], cwd=root, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return [root / name for name in listed.split("\0") if name]


def main(words: list[str], root: Path) -> int:
    """Print or set the address; returns the exit code."""
    old = stated(root)
    if words and (len(words) != 2 or not REPOSITORY.fullmatch(words[0]) or not SITE.fullmatch(words[1])):
        print(
            f"found {' '.join(words)}, expected two addresses: https://github.com/OWNER/NAME, and the "
            "address of the site, which ends with /",
            file=sys.stderr,
        )
        return 2
    changes = replacements(old, (words[0], words[1]) if words else old)
    try:
        files = repeated(root, list(changes))
    except subprocess.CalledProcessError:
        return 2  # git has printed the reason
    if not words:
        print(*old, sep="\n")
    for path in files:
        if words:
            text = path.read_text(encoding="utf-8")
            for before, after in changes.items():
                text = text.replace(before, after)
            path.write_text(text, encoding="utf-8")
        print(path.relative_to(root))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[1]))
