"""Boots systemd over the overlay of `package_lab`, and runs the package's units and the controller's unit.

Run the script as root in its own namespaces. It must be process 1 of the PID namespace. Its cgroup must be
the root of the cgroup namespace:

    python systemd_lab.py PACKAGE FOLDER RESULT

The script writes its observations to RESULT, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import narrows
import package_lab
from package_lab import PORT, mount

SYSTEMD = Path("/lib/systemd/systemd")
ROLES = ("switch", "sender", "receiver")
STARTS = 5
"""Number of starts within 10 s that systemd allows by default (DefaultStartLimitBurst)."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
UNIT = Path(__file__).parents[3] / "packaging/systemd/narrows-controller.service"
PAGE = 8008
CONTROLLER = f"""\
[openflow]
port = 0
[agents]
port = 0
[http]
port = {PAGE}
token = "/run/credentials/narrows-controller.service/keys_page.token"
"""
TOKEN = "0123456789abcdef" * 4
PROGRAM = """\
#!/bin/sh
export PYTHONHOME=/opt/python PYTHONPATH=/opt/packages:/opt/source LD_LIBRARY_PATH=/opt/python/lib
exec /opt/python/bin/python3 -m narrows.cli.main "$@"
"""
"""The command `narrows`. The unit hides /home and /root, where the interpreter and the project often are."""
PROBE = """\
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
TimeoutStartSec=300
ExecStart={python} {script} probe {result}
ExecStopPost=/bin/systemctl exit --force
"""


def install_controller(root: Path) -> None:
    """Installs the controller's unit with a configuration and a token that only root can read."""
    packages = next(Path(entry) for entry in sys.path if entry.endswith("site-packages"))
    source = Path(narrows.__file__).parents[1]
    for name, folder in (("python", Path(sys.base_prefix)), ("packages", packages), ("source", source)):
        (root / "opt" / name).mkdir(parents=True)
        subprocess.run(["mount", "--rbind", folder, root / "opt" / name], check=True)
    program = root / "usr/local/bin/narrows"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (root / "etc/narrows/controller.toml").write_text(CONTROLLER)
    keys = root / "etc/narrows/controller"
    keys.mkdir(mode=0o700)
    (keys / "page.token").write_text(TOKEN)
    (keys / "page.token").chmod(0o600)
    (root / "etc/systemd/system" / UNIT.name).write_text(UNIT.read_text())


def boot(package: Path, folder: Path, result: Path) -> None:
    """Installs the package into an overlay, and replaces this process by systemd in the overlay."""
    root, _ = package_lab.overlay(folder)
    # Mounted read-only, as in a container. Otherwise systemd would change devices and kernel parameters.
    for name in ("sys", "proc/sys"):
        subprocess.run(["mount", "--bind", root / name, root / name], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", root / name], check=True)
    mount("cgroup2", "cgroup2", root / "sys/fs/cgroup")
    mount("bpf", "bpf", root / "sys/fs/bpf")
    mount("tmpfs", "tmpfs", root / "dev")
    for name in DEVICES:
        (root / "dev" / name).touch()
        subprocess.run(["mount", "--bind", f"/dev/{name}", root / "dev" / name], check=True)
    (root / "dev/fd").symlink_to("/proc/self/fd")
    # For a unit with PrivateDevices, systemd copies /dev/pts and /dev/shm.
    for name in ("pts", "shm"):
        (root / "dev" / name).mkdir()
    mount("devpts", "devpts", root / "dev/pts", "-o", "newinstance,ptmxmode=0666")
    (root / "dev/ptmx").symlink_to("pts/ptmx")
    (root / "mnt").mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", result.parent, root / "mnt"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "link", "add", PORT, "type", "veth", "peer", "name", "nwpackage1"], check=True)
    subprocess.run(["ip", "link", "set", PORT, "up"], check=True)
    (root / "root/agent.deb").write_bytes(package.read_bytes())
    subprocess.run(["chroot", root, "dpkg", "--install", "/root/agent.deb"], check=True, stdout=sys.stderr)
    with (root / "etc/narrows/switch.toml").open("a") as config:
        config.write(f'\n[[ports]]\ninterface = "{PORT}"\nrate = "100mbit"\n')
    install_controller(root)
    # systemd mounts a service's credentials in another mount namespace, from which they propagate.
    subprocess.run(["mount", "--make-rshared", root], check=True)
    probe = PROBE.format(python=sys.executable, script=Path(__file__), result=f"/mnt/{result.name}")
    (root / "etc/systemd/system/probe.service").write_text(probe)
    os.chroot(root)
    os.chdir("/")
    environment = {**os.environ, "container": "narrows-test"}
    os.execve(SYSTEMD, [str(SYSTEMD), "--system", "--unit=probe.service", "--show-status=no"], environment)


def ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def unit(role: str) -> dict[str, str]:
    """Properties of the agent's unit for this role."""
    return properties(f"narrows-agent@{role}")


def properties(name: str) -> dict[str, str]:
    """Properties of a unit."""
    shown = ask("systemctl", "show", "-p", "ActiveState,MainPID,NRestarts,Result", name)
    return dict(line.split("=", 1) for line in shown.splitlines())


def process(pid: int) -> dict[str, object]:
    """Rights and scheduling of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    policy = os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK
    return {
        "capabilities": int(fields["CapEff"], 16),
        "bounding": int(fields["CapBnd"], 16),
        "no_new_privileges": fields["NoNewPrivs"].strip(),
        "is_filtered": fields["Seccomp"].strip() == "2",
        "is_real_time": policy == os.SCHED_RR,
        "user": int(fields["Uid"].split()[0]),
    }


def answer() -> int:
    """The page's HTTP status for a request with the token. It is 0 if nothing answers within 20 s."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{PAGE}/", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        try:
            return urllib.request.urlopen(request, timeout=5).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            time.sleep(0.1)
    return 0


def controller() -> dict[str, object]:
    """Starts the controller, kills it, and restarts it with a wrong configuration."""
    name = UNIT.stem
    subprocess.run(["systemctl", "start", name], check=False)
    seen: dict[str, object] = {"started": properties(name)}
    first = seen["started"]["MainPID"]
    seen["process"] = process(int(first)) if first != "0" else None
    seen["answer"] = answer()
    if first != "0":
        os.kill(int(first), signal.SIGKILL)
        end_s = time.monotonic() + 60
        while properties(name)["MainPID"] in (first, "0") and time.monotonic() < end_s:
            time.sleep(0.05)
        while properties(name)["ActiveState"] == "activating" and time.monotonic() < end_s:
            time.sleep(0.05)
    seen["killed"] = properties(name)
    seen["answer_after"] = answer()
    Path("/etc/narrows/controller.toml").write_text("[agents]\nsecret = 7\n")
    subprocess.run(["systemctl", "restart", name], check=False)
    time.sleep(3)  # longer than RestartSec
    seen["wrong"] = properties(name)
    seen["log"] = ask("journalctl", "--no-pager", "--output=cat", "-u", name)
    return seen


def late() -> dict[str, str]:
    """Restarts the sender while its interface is missing.

    Adds the interface after more than `STARTS` starts.
    """
    Path("/etc/narrows/sender.toml").write_text('[sender]\ninterfaces = ["late"]\n')
    subprocess.run(["systemctl", "restart", "--no-block", "narrows-agent@sender"], check=False)
    end_s = time.monotonic() + 60
    while (state := unit("sender"))["ActiveState"] != "failed" and int(state["NRestarts"]) <= STARTS:
        time.sleep(0.1)
    subprocess.run(["ip", "link", "add", "late", "type", "veth", "peer", "name", "late1"], check=False)
    while (state := unit("sender"))["ActiveState"] == "activating" and time.monotonic() < end_s:
        time.sleep(0.1)
    return state


def probe() -> dict[str, object]:
    """Starts all roles, kills the switch, stops all roles, and purges the package while the switch runs."""
    seen: dict[str, object] = {"queue_before": package_lab.queue()}
    for role in ROLES:
        subprocess.run(["systemctl", "start", f"narrows-agent@{role}"], check=False)
    seen["started"] = {role: unit(role) for role in ROLES}
    seen["processes"] = {role: process(int(unit(role)["MainPID"])) for role in ROLES}
    seen["queue_during"] = package_lab.queue()
    first = unit("switch")["MainPID"]
    os.kill(int(first), signal.SIGKILL)
    while (state := unit("switch"))["MainPID"] in (first, "0") and state["ActiveState"] != "failed":
        time.sleep(0.05)
    while unit("switch")["ActiveState"] == "activating":
        time.sleep(0.05)
    seen["killed"] = unit("switch")
    seen["late"] = late()
    seen["controller"] = controller()
    for role in ROLES:
        subprocess.run(["systemctl", "stop", f"narrows-agent@{role}"], check=False)
    seen["stopped"] = {role: unit(role) for role in ROLES}
    seen["queue_after"] = package_lab.queue()
    subprocess.run(["systemctl", "enable", "--now", "narrows-agent@switch"], check=False)
    seen["enabled"] = unit("switch")
    seen["purge"] = subprocess.run(["dpkg", "--purge", "narrows-agent"], check=False).returncode
    seen["running"] = ask("pgrep", "-x", "narrows-agent")
    seen["queue_purged"] = package_lab.queue()
    places = (Path("/etc"), Path("/run"), Path("/usr/lib/systemd"))
    seen["left"] = [str(path) for place in places for path in place.rglob("*narrows-agent*")]
    seen["log"] = ask("journalctl", "--no-pager", "--output=cat", "-u", "narrows-agent@*")
    return seen


if __name__ == "__main__":
    if sys.argv[1] == "probe":
        Path(sys.argv[2]).write_text(json.dumps(probe()))
    else:
        boot(*map(Path, sys.argv[1:4]))
