"""Makes the saved guest from which runs start.

The guest is packed, booted once, and saved while it waits for a plan.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrows import congestion, locks
from narrows.backends.kernel import agents
from narrows.backends.vm import closure, package
from narrows.backends.vm.archive import Archive
from narrows.backends.vm.errors import VmError
from narrows.backends.vm.machine import Machine, command, version
from narrows.backends.vm.package import Kernel

_FACTS = "facts.json"
_KEPT = 3
"""Number of saved guests that are never removed: the latest ones. Each guest takes about 900 MB."""
_UNUSED_SECONDS = 3600.0
"""A saved guest is removed only if it was not used for this time. The `_KEPT` latest guests always stay."""
_BOOT_SECONDS = 1200.0
"""Maximum duration of a boot: ten times the duration measured on two busy processors."""

MODULES = (
    "net/sched/",
    "net/ipv4/tcp_",
    "net/ipv4/inet_diag",
    "net/ipv4/udp_diag",
    "net/openvswitch/",
    "net/bridge/bridge.ko",
    "net/packet/",
    "crypto/crc32c_generic",
    "drivers/net/veth",
    "drivers/net/tun.ko",
    "drivers/net/ifb",
    "drivers/virtio/virtio_pci",
    "drivers/char/virtio_console",
    "drivers/firmware/qemu_fw_cfg",
)
"""Prefixes of the kernel modules that the guest contains."""
BUILT_IN = ("tcp_cubic",)
"""Modules of congestion control algorithms that are part of Debian's kernel image."""


def offered() -> list[str]:
    """The congestion control algorithms of guests: Linux's algorithms in the catalogue."""
    return sorted(row.linux.name for row in congestion.catalogue().values() if row.linux is not None)


def _modules_of_algorithms() -> set[str]:
    linux = (row.linux for row in congestion.catalogue().values())
    return {algorithm.module for algorithm in linux if algorithm is not None and algorithm.module is not None}


def loaded() -> list[str]:
    """Modules that are loaded before the guest is saved.

    Open vSwitch is not among these modules, because it enables connection tracking. With connection tracking,
    every packet of every run would take a seventh more processing time. `guest.py` loads Open vSwitch on
    demand.
    """
    return [
        *sorted(module for module in _modules_of_algorithms() if module not in BUILT_IN),
        *("virtio_pci", "virtio_console", "veth", "tcp_diag", "udp_diag", "tun", "sch_htb", "sch_netem"),
    ]


INIT = """#!/bin/busybox sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
/bin/busybox mkdir -p /proc /sys /dev /run /tmp /root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mkdir -p /run/netns /var/run /etc
ip link set lo up
modprobe -a {modules}
export {environment}
exec setsid {python} {start} </dev/console >/dev/console 2>&1
"""


Extra = frozenset[Path]
"""Files of this machine that a guest has in addition to the files that every guest has."""
NO_EXTRA: Extra = frozenset()


def contents(extra: Extra = NO_EXTRA) -> list[Path]:
    """The files of this machine that go into the guest."""
    programs = closure.programs()
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    files = {*closure.python(), *programs, *closure.libraries(programs), *closure.data(), loader, *extra}
    return sorted(files)


def fingerprint(kernel: Kernel, extra: Extra = NO_EXTRA) -> str:
    """A digest of everything that determines a saved guest."""
    digest = hashlib.sha256()
    machine = map(str, command(Path(), Path(), Path(), Path()))
    for line in (kernel.sha256, version(), *machine, INIT, *MODULES, *loaded()):
        digest.update(line.encode() + b"\n")
    for path in contents(extra):
        if "__pycache__" in path.parts:
            continue  # compiled files follow from their source files
        found = path.stat()
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def pack(kernel: Kernel, target: Path, extra: Extra = NO_EXTRA) -> None:
    """Write the initramfs."""
    busybox = Path(shutil.which("busybox") or "/bin/busybox")
    with target.open("wb") as out:
        archive = Archive(out)
        for folder in ("dev", "proc", "sys", "run", "tmp", "root", "var", "etc"):
            archive.folder(folder)
        archive.device("dev/console", 5, 1)
        for path in contents(extra):
            archive.copy(path)
        archive.file("bin/busybox", busybox.read_bytes(), 0o755)
        listed = subprocess.run([str(busybox), "--list-full"], capture_output=True, text=True, check=True)
        added = (path for path in extra if path.parent.name in ("bin", "sbin"))
        whole = {path.name for path in (*closure.programs(), *added)}
        for applet in listed.stdout.split():
            # If /bin is a link to /usr/bin, a link for an applet would replace the real program of the same
            # name.
            if Path(applet).name not in whole:
                archive.link(applet, "/bin/busybox")
        _modules(archive, kernel.folder, kernel.release)
        init = INIT.format(
            modules=" ".join(loaded()),
            environment=_environment(),
            python=sys.executable,
            start=closure.START,
        )
        archive.file("init", init.encode(), 0o755)
        archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
        archive.file("etc/group", b"root:x:0:\n")
        archive.close()


def _environment() -> str:
    """The environment of the guest's Python and programs."""
    paths = [str(closure.OURS.parent), *(path for path in sys.path if path.endswith("site-packages"))]
    words = {"PYTHONPATH": ":".join(paths), "HOME": "/root"}
    if agent := closure.agent():
        words[agents.VARIABLE] = str(agent)
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in words.items())


def _modules(archive: Archive, folder: Path, version: str) -> None:
    """Add the modules, their dependencies, and modprobe's tables for all added modules."""
    source = folder / "lib/modules" / version
    needs = {}
    for line in (source / "modules.dep").read_text().splitlines():
        name, _, others = line.partition(":")
        needs[name] = others.split()
    wanted = [n for n in needs if any(n.removeprefix("kernel/").startswith(part) for part in MODULES)]
    chosen = set(wanted) | {other for name in wanted for other in needs[name]}
    with tempfile.TemporaryDirectory() as temporary:
        staged = Path(temporary) / "lib/modules" / version
        for name in chosen:
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".xz"):
                # Later packages have compressed modules, which busybox may be unable to load.
                (staged / name.removesuffix(".xz")).write_bytes(lzma.decompress((source / name).read_bytes()))
            else:
                shutil.copy2(source / name, staged / name)
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            shutil.copy2(source / name, staged / name)
        subprocess.run(["depmod", "-b", temporary, version], check=True, capture_output=True)
        for path in sorted(staged.rglob("*")):
            if path.is_file():
                archive.file(f"lib/modules/{version}/{path.relative_to(staged)}", path.read_bytes())


@dataclass(frozen=True)
class Image:
    """A saved guest."""

    kernel: Kernel
    folder: Path
    facts: dict[str, Any]
    """Facts that the guest reported."""

    @property
    def initramfs(self) -> Path:
        """Path of the archive with the guest's files."""
        return self.folder / "initramfs"

    @property
    def state(self) -> Path:
        """Path of the file with the saved state of the guest."""
        return self.folder / "state"


def existing() -> Image | None:
    """The saved guest, if it matches the current files."""
    kernel = package.found()
    return _read(kernel, _folder(kernel, fingerprint(kernel))) if kernel else None


def prepared() -> Kernel:
    """The guests' kernel, after a check that all prerequisites are present.

    Raises:
        VmError: if something is missing.
    """
    kernel = package.found()
    if kernel is None:
        raise VmError("found no kernel for guests: run narrows vm prepare")
    if lacking := package.missing():
        raise VmError(f"found no {', '.join(lacking)}, which guests need: run narrows vm prepare")
    return kernel


def ensure(say: Callable[[str], None], extra: Extra = NO_EXTRA) -> Image:
    """Return the saved guest. If there is none, or if its inputs have changed, boot and save a guest first.

    Args:
        say: called with a line before a boot.
        extra: additional files of the guest.

    Raises:
        VmError: if there is no kernel, or if the guest does not boot.
    """
    kernel = prepared()
    folder = _folder(kernel, fingerprint(kernel, extra))
    with locks.held(package.cache() / "lock"):
        known = _read(kernel, folder)
        return known or _make(kernel, folder, say, extra)


def _folder(kernel: Kernel, digest: str) -> Path:
    return package.cache() / f"guest-{kernel.release}-{digest[:16]}"


def _read(kernel: Kernel, folder: Path) -> Image | None:
    try:
        facts = folder / _FACTS
        facts.touch()  # marks it as used, see `_tidy`
        reported = json.loads(facts.read_text(encoding="utf-8"))
        image = Image(kernel, folder, reported)
        complete = isinstance(reported, dict) and "congestion_controls" in reported
        return image if complete and image.initramfs.is_file() and image.state.is_file() else None
    except (OSError, ValueError):
        return None


def _make(kernel: Kernel, folder: Path, say: Callable[[str], None], extra: Extra) -> Image:
    began = time.monotonic()
    say("booting a guest with the scenario's programs, once ..." if extra else "booting a guest, once ...")
    with tempfile.TemporaryDirectory(dir=package.cache(), prefix="new-") as name:
        new = Path(name) / "guest"
        new.mkdir()
        pack(kernel, new / "initramfs", extra)
        facts = _boot_and_save(Image(kernel, new, {}))
        (new / _FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            folder.rename(Path(name) / "damaged")  # `_read` found it unusable
        new.rename(folder)
    _tidy(package.cache(), time.time())
    size = (folder / "state").stat().st_size >> 20
    say(f"the guest was booted and saved in {time.monotonic() - began:.0f} s ({size} MB)")
    return Image(kernel, folder, facts)


def _tidy(cache: Path, now: float) -> None:
    """Remove old saved guests. Keep the `_KEPT` latest guests, because other checkouts may use them."""
    known = {path.parent: path.stat().st_mtime for path in cache.glob(f"guest-*/{_FACTS}")}
    for folder in sorted(known, key=known.__getitem__, reverse=True)[_KEPT:]:
        if now - known[folder] > _UNUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
    for unfinished in cache.glob("new-*"):  # left by a process that was killed
        if now - unfinished.stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(unfinished, ignore_errors=True)


def _boot_and_save(image: Image) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="narrows-vm-") as name:
        folder = Path(name)
        plan = folder / "plan"
        plan.write_text("null")
        with Machine(
            command(image.kernel.image, image.initramfs, folder, plan), folder, alone=False
        ) as machine:
            machine.receive(("event",), _BOOT_SECONDS, "STOP")
            answer: dict[str, Any] = json.loads((folder / "answer").read_text().partition("\n")[0])
            if "ready" not in answer:
                raise VmError(f"the guest is not ready: {answer.get('failed')}")
            machine.save(image.state)
    facts: dict[str, Any] = answer["ready"]
    return facts
