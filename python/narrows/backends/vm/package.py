"""Provides the guests' kernel.

The kernel is a distribution's package, which is unpacked into the cache and never installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from narrows.backends.vm.errors import VmError

METAPACKAGE = "linux-image-amd64"
"""Debian's metapackage for its current kernel."""
RECENT = "linux-image-6.12-amd64"
"""A metapackage of Debian 12 for a kernel that runs BRF's agents."""
AGENTS_SINCE = (6, 10)
"""The first version of Linux on which BRF's senders run (docs/how-to/kernel.md)."""
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "depmod": "kmod",
    "setpriv": "util-linux",
}
"""Programs that guests need on this machine, and the Debian packages that contain them."""
_RECORD = "package.json"


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel."""

    folder: Path
    release: str
    """The output of `uname -r`."""
    package: str
    version: str
    sha256: str
    """Digest of the package file."""

    @property
    def runs_agents(self) -> bool:
        """Whether BRF's agents run on this kernel."""
        return runs_agents(self.release)

    @property
    def image(self) -> Path:
        """The kernel image to boot."""
        return self.folder / f"boot/vmlinuz-{self.release}"

    @property
    def modules(self) -> Path:
        """The folder of the kernel's modules."""
        return self.folder / "lib/modules" / self.release


def runs_agents(release: str) -> bool:
    """Whether BRF's agents run on the kernel with this `uname -r`."""
    return tuple(map(int, re.findall(r"\d+", release)[:2])) >= AGENTS_SINCE


def cache() -> Path:
    """The folder of kernels and saved guests: NARROWS_VM, or a folder in the user's cache."""
    given = os.environ.get("NARROWS_VM")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    # The path is absolute, because it is passed to programs that run in other folders.
    return Path(given).absolute() if given else Path(base) / "narrows" / "vm"


def found() -> Kernel | None:
    """The prepared kernel, if there is one."""
    try:
        record = json.loads((cache() / "kernel" / _RECORD).read_text(encoding="utf-8"))
        kernel = Kernel(cache() / "kernel", **record)
    except (OSError, ValueError, TypeError):
        return None
    return kernel if kernel.image.exists() and (kernel.modules / "modules.dep").exists() else None


def missing() -> list[str]:
    """The programs that guests need and this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def install(names: list[str], say: Callable[[str], None]) -> None:
    """Install the packages of missing programs, as root on a Debian-based system.

    Raises:
        VmError: if they cannot be installed. The message contains the command that the user can run.
    """
    packages = sorted({PROGRAMS[name] for name in names})
    words = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise VmError(f"found no {', '.join(names)}, which guests need; run as root: {' '.join(words)}")
    say(f"installing {', '.join(packages)} ...")
    # On a new machine, automatic upgrades often hold the package manager's lock.
    wait = ("-o", "DPkg::Lock::Timeout=300")
    _call(["apt-get", *wait, "update", "--quiet"])
    _call([words[0], *wait, *words[1:]], DEBIAN_FRONTEND="noninteractive")


def fetch(say: Callable[[str], None], asked: str = METAPACKAGE) -> Kernel:
    """Download the distribution's kernel package and unpack it into the cache.

    Args:
        say: called with a line before each step.
        asked: a package with a kernel, or a metapackage that depends on such a package.

    Raises:
        VmError: if there is no such package, or if a tool is missing.
    """
    for tool in ("apt-get", "apt-cache", "dpkg", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise VmError(f"found no {tool}: the guests' kernel is a Debian package ({asked})")
    name = resolved(asked)
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix="new-") as temporary:
        place = Path(temporary)
        say(f"downloading {name} ...")
        _call(["apt-get", "download", "--quiet", name], place)
        files = sorted(place.glob("*.deb"))
        if not files:
            raise VmError(f"apt-get download {name} left no package")
        say(f"unpacking {files[0].name} ({files[0].stat().st_size >> 20} MB) ...")
        target = place / "kernel"
        _call(["dpkg", "-x", str(files[0]), str(target)])
        for folder in ("usr/lib/modules", "lib/modules"):  # packages without merged /usr use /lib/modules
            if (target / folder).is_dir() and folder != "lib/modules":
                (target / "lib").mkdir(exist_ok=True)
                (target / folder).rename(target / "lib/modules")
        releases = sorted(entry.name for entry in (target / "lib/modules").iterdir())
        _call(["depmod", "-b", str(target), releases[0]])
        version = _call(["dpkg-deb", "--field", str(files[0]), "Version"]).strip()
        digest = hashlib.sha256(files[0].read_bytes()).hexdigest()
        kernel = Kernel(cache() / "kernel", releases[0], name, version, digest)
        record = {key: value for key, value in asdict(kernel).items() if key != "folder"}
        (target / _RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        if kernel.folder.exists():
            kernel.folder.rename(place / "old")
        target.rename(kernel.folder)
    return kernel


def resolved(asked: str) -> str:
    """The name of a kernel package. For a metapackage, this is the package on which it depends.

    Raises:
        VmError: if there is no such package.
    """
    if not re.fullmatch(r"linux-image-[a-z0-9.+-]+", asked):
        raise VmError(f"found the package {asked!r}, expected the name of a kernel such as {METAPACKAGE}")
    told = _call(["apt-cache", "depends", "--important", asked])
    names = re.findall(r"Depends: (linux-image-\S+)", told)
    if not names and asked == METAPACKAGE:
        raise VmError(f"found no package {METAPACKAGE}; guests run Debian's kernel: apt-get update?")
    return str(names[0]) if names else asked


def _call(words: list[str], folder: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise VmError(f"{' '.join(words)}: {last}")
    return done.stdout
