"""Packs a static narrows-agent into a wheel, so that `pip install 'narrows[kernel]'` also installs the agent.

python packaging/agent-wheel/build.py BINARY FOLDER    # prints the path of the wheel

The wheel contains the binary that was built and tested. The binary needs no C library of the system, so the
wheel has the tags of manylinux and of musllinux. The program refuses a dynamically linked binary, for which
these tags would be wrong.
"""

import argparse
import base64
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MACHINES = {62: "x86_64", 183: "aarch64"}
"""e_machine of an ELF header (elf.h): EM_X86_64, EM_AARCH64."""
PT_INTERP = 3
"""The segment that names the dynamic loader (elf.h)."""
TAGS = ("manylinux2014", "manylinux_2_17", "musllinux_1_1")
LICENCE = (
    "(Apache-2.0 OR MIT) AND GPL-2.0-only AND BSD-2-Clause AND Zlib"
    " AND LGPL-2.1-or-later AND LGPL-3.0-or-later"
)
"""Licences of the agent, its eBPF programs, libbpf, zlib, the C library and libelf, in this order."""
LICENCE_FILES = {
    "LICENSE-APACHE": ROOT / "LICENSE-APACHE",
    "LICENSE-MIT": ROOT / "LICENSE-MIT",
    "copyright": ROOT / "packaging/deb/copyright",
}
PYTHON_ONLY = ("Programming Language :: Python", "Typing ::")
"""Classifiers of the Python package that do not apply to the agent."""
EARLIEST = 315532800
"""1 January 1980 in Unix time, the earliest time that a zip file can store."""


class UnfitError(Exception):
    """The binary cannot be packed. The message gives the reason in one line."""


def machine(binary: bytes) -> str:
    """The machine of a static ELF binary of 64 bits, as in the tags of wheels.

    Raises:
        UnfitError: if `binary` is not a static ELF binary of 64 bits for a known machine.
    """
    if binary[:6] != b"\x7fELF\x02\x01":
        raise UnfitError("found no little-endian ELF file of 64 bits")
    (kind,) = struct.unpack_from("<H", binary, 18)
    if kind not in MACHINES:
        raise UnfitError(f"found ELF machine {kind}, expected one of {', '.join(MACHINES.values())}")
    (table,) = struct.unpack_from("<Q", binary, 32)
    size, count = struct.unpack_from("<HH", binary, 54)
    if any(struct.unpack_from("<I", binary, table + n * size)[0] == PT_INTERP for n in range(count)):
        raise UnfitError("found a dynamically linked binary, expected a static one: make agent")
    return MACHINES[kind]


def stripped(binary: Path) -> bytes:
    """The program without symbols, as in the Debian package.

    llvm-strip handles all architectures, but LLVM 14 refuses static programs for aarch64, because their
    .rela.plt has no table of symbols. Therefore, if the toolchain for the program's architecture has its own
    strip, this function calls it instead.
    """
    own = f"{machine(binary.read_bytes())}-linux-gnu-strip"
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy2(binary, folder)
        subprocess.run([own if shutil.which(own) else "llvm-strip", copy], check=True)
        return Path(copy).read_bytes()


def metadata() -> str:
    """The text of METADATA (Core Metadata 2.4), with values from the manifests of Cargo and Python."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    package = tomllib.loads((ROOT / "crates/narrows-agent/Cargo.toml").read_text())["package"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [
        "Metadata-Version: 2.4",
        "Name: narrows-agent",
        f"Version: {workspace['version']}",
        f"Summary: {package['description']}",
        f"License-Expression: {LICENCE}",
        *(f"License-File: {name}" for name in LICENCE_FILES),
        *(f"Author: {author}" for author in workspace["authors"]),
        *(f"Project-URL: {name}, {address}" for name, address in python["urls"].items()),
        *(f"Classifier: {name}" for name in python["classifiers"] if not name.startswith(PYTHON_ONLY)),
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "packaging/agent-wheel/README.md").read_text(),
    ]
    return "\n".join(lines)


def record_line(name: str, content: bytes) -> str:
    """The line of a file in RECORD, the wheel's list of files with their hashes."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def build(binary: Path, folder: Path) -> Path:
    """Writes the wheel into `folder` and returns its path.

    Raises:
        UnfitError: if the binary is not a static ELF binary for a known machine.
    """
    tags = [f"{tag}_{machine(binary.read_bytes())}" for tag in TAGS]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    stem = f"narrows_agent-{version}"
    lines = ["Wheel-Version: 1.0", "Generator: narrows", "Root-Is-Purelib: false"]
    info = f"{stem}.dist-info"
    files = {
        f"{stem}.data/scripts/narrows-agent": stripped(binary),
        **{f"{info}/licenses/{name}": path.read_bytes() for name, path in LICENCE_FILES.items()},
        f"{info}/METADATA": metadata().encode(),
        f"{info}/WHEEL": "\n".join([*lines, *(f"Tag: py3-none-{tag}" for tag in tags), ""]).encode(),
    }
    record = [record_line(name, content) for name, content in files.items()] + [f"{info}/RECORD,,", ""]
    files[f"{info}/RECORD"] = "\n".join(record).encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{stem}-py3-none-{'.'.join(tags)}.whl"
    partial = wheel.with_suffix(".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            archive.writestr(entry(name), content)
    partial.replace(wheel)
    return wheel


def entry(name: str) -> zipfile.ZipInfo:
    """The archive's entry for a file: executable for scripts, and with a reproducible time."""
    moment = max(int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)), EARLIEST)
    found = zipfile.ZipInfo(name, date_time=time.gmtime(moment)[:6])
    found.compress_type = zipfile.ZIP_DEFLATED
    found.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
    return found


def main() -> int:
    """Runs the command line, and returns its exit code."""
    parser = argparse.ArgumentParser(description="Pack a static narrows-agent into a wheel")
    parser.add_argument("binary", type=Path, help="static narrows-agent, e.g. target/release/narrows-agent")
    parser.add_argument("folder", type=Path, help="folder for the wheel")
    given = parser.parse_args()
    try:
        print(build(given.binary, given.folder))
    except (UnfitError, OSError) as wrong:
        print(f"{given.binary}: {wrong}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
