"""Installs narrows-agent's Debian package, runs it and purges it; prints observations as JSON.

Run the script as root in its own mount namespace and network namespace:

    unshare --mount --net python package_lab.py PACKAGE FOLDER

dpkg runs in an overlay of the root file system, so the machine stays unchanged. The overlay's upper layer has
every changed file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

PORT = "nwpackage0"
ALGORITHM = "narrows_bbr_c"
UNIT = "usr/lib/systemd/system/narrows-agent@.service"
NOT_FILES_OF_A_PACKAGE = ("dev", "proc", "sys", "run", "tmp", "var/cache", "var/lib/dpkg", "var/log")
"""Virtual file systems, and the folders that dpkg and its triggers change."""


def overlay(folder: Path) -> tuple[Path, Path]:
    """Mounts an overlay of the root file system. Returns its root, and the folder that gets the changes."""
    mount("tmpfs", "tmpfs", folder)
    root, changes, work = (folder / name for name in ("root", "changes", "work"))
    for part in (root, changes, work):
        part.mkdir()
    mount("overlay", "overlay", root, "-o", f"lowerdir=/,upperdir={changes},workdir={work}")
    mount("proc", "proc", root / "proc")
    mount("sysfs", "sysfs", root / "sys")
    mount("bpf", "bpf", root / "sys/fs/bpf")
    mount("cgroup2", "cgroup2", root / "sys/fs/cgroup")
    subprocess.run(["mount", "--rbind", "/dev", root / "dev"], check=True)
    for name in ("run", "tmp"):
        mount("tmpfs", "tmpfs", root / name)
    return root, changes


def mount(kind: str, source: str, place: Path, *options: str) -> None:
    subprocess.run(["mount", "-t", kind, *options, source, place], check=True)


def inside(root: Path, *command: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["chroot", root, *command], capture_output=True, text=True, check=False, **options)


def commands(root: Path, key: str, role: str) -> list[str]:
    """The unit's command for the instance `role`."""
    (line,) = re.findall(rf"^{key}=-?(.*)$", (root / UNIT).read_text(), re.MULTILINE)
    return shlex.split(line.replace("%i", role))


def added(changes: Path) -> list[str]:
    found = []
    for path in changes.rglob("*"):
        name = str(path.relative_to(changes))
        is_whiteout = path.is_char_device()  # overlayfs: a removed file
        if (
            not name.startswith(NOT_FILES_OF_A_PACKAGE)
            and not is_whiteout
            and not os.path.lexists(f"/{name}")
        ):
            found.append(name)
    return sorted(found)


def queue() -> str:
    shown = subprocess.run(
        ["tc", "qdisc", "show", "dev", PORT, "root"], capture_output=True, text=True, check=True
    )
    return shown.stdout.split()[1]


def run_switch(root: Path) -> dict[str, object]:
    """Starts the switch by the unit's commands. Reads its metrics, and stops it."""
    checked = inside(root, *commands(root, "ExecStartPre", "switch"))
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(root / "run/notify"))
    manager.settimeout(60)
    before = queue()
    switch = subprocess.Popen(
        ["chroot", root, *commands(root, "ExecStart", "switch")],
        env={**os.environ, "NOTIFY_SOCKET": "/run/notify"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = manager.recv(64).decode()
        during = queue()
        page, kind = "", ""
        while f'port="{PORT}"' not in page and switch.poll() is None:
            with urllib.request.urlopen("http://127.0.0.1:9471/metrics", timeout=10) as answer:
                page, kind = answer.read().decode(), answer.headers["Content-Type"]
        status = inside(root, "narrows-agent", "status").stdout
    finally:
        switch.send_signal(signal.SIGTERM)
        _, log = switch.communicate(timeout=60)
    return {
        "checked": checked.returncode,
        "said": said,
        "queues": [before, during, queue()],
        "page": page,
        "content_type": kind,
        "status": status,
        "exit_code": switch.returncode,
        "log": log,
        "sockets": sorted(path.name for path in (root / "run/narrows-agent").glob("*")),
    }


def main(package: Path, folder: Path) -> dict[str, object]:
    """Installs, runs and removes the package, and returns the observations."""
    root, changes = overlay(folder)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "link", "add", PORT, "type", "veth", "peer", "name", "nwpackage1"], check=True)
    subprocess.run(["ip", "link", "set", PORT, "up"], check=True)
    (root / "tmp/agent.deb").write_bytes(package.read_bytes())
    seen: dict[str, object] = {"root_before": added(changes)}
    seen["install"] = outcome(inside(root, "dpkg", "--install", "/tmp/agent.deb"))
    seen["installed"] = added(changes)
    seen["conffiles"] = inside(
        root, "dpkg-query", "--show", "--showformat=${Conffiles}", "narrows-agent"
    ).stdout
    seen["unedited"] = outcome(inside(root, *commands(root, "ExecStart", "switch")))
    seen["verify"] = [
        outcome(inside(root, "systemd-analyze", "verify", "--man=no", f"narrows-agent@{role}.service"))
        for role in ("switch", "sender", "receiver")
    ]
    with (root / "etc/narrows/switch.toml").open("a") as config:
        config.write(f'\n[[ports]]\ninterface = "{PORT}"\nrate = "100mbit"\n')
    seen["switch"] = run_switch(root)
    # The names of algorithms are global in the kernel, so this name may exist already.
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    seen["was_loaded"] = ALGORITHM in available.read_text().split()
    if not seen["was_loaded"]:
        seen["load"] = outcome(inside(root, "narrows-agent", "cc", "load", "bbr-c"))
        seen["is_loaded"] = ALGORITHM in available.read_text().split()
    seen["purge"] = outcome(inside(root, "dpkg", "--purge", "narrows-agent"))
    seen["is_loaded_after"] = ALGORITHM in available.read_text().split()
    seen["pins"] = [str(path) for path in (root / "sys/fs/bpf").glob("narrows*")]
    seen["left"] = added(changes)
    seen["run"] = sorted(str(path) for path in (root / "run").glob("narrows*"))
    return seen


def outcome(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    return {"code": done.returncode, "output": done.stdout + done.stderr}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
