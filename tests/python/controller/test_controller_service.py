"""The controller's systemd unit and its commands."""

import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from channel_keys import Keys
from narrows.controller.files import check_private
from narrows.errors import NarrowsError

UNITS = Path(__file__).parents[3] / "packaging/systemd"
UNIT = UNITS / "narrows-controller.service"
CONFIG = "/etc/narrows/controller.toml"
HARDENING = ("Ambient", "Capability", "Device", "Keyring", "Lock", "Memory", "NoNew", "Private", "Protect")
HARDENING += ("Restrict", "SystemCall", "UMask")


def settings(unit):
    section, found = "", {}
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value)
    return found


def command(key, config):
    """The unit's command for `key`. `config` replaces the path of the configuration."""
    (line,) = settings(UNIT)[key]
    program, *arguments = line.removeprefix("-").split()
    assert program == "narrows" and CONFIG in arguments, line
    return [sys.executable, "-m", "narrows.cli.main", *(str(config) if a == CONFIG else a for a in arguments)]


def run(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_systemd_accepts_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is needed")
    # The program must exist, because systemd-analyze checks this.
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("=narrows ", f"={sys.executable} -m narrows.cli.main "))
    done = run(["systemd-analyze", "verify", unit])
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_is_at_least_as_hardened_as_the_agents():
    agent, controller = settings(UNITS / "narrows-agent@.service"), settings(UNIT)
    keys = [key for key in agent if key.startswith(HARDENING) and not key.startswith("RestartPrevent")]
    assert len(keys) > 15
    for key in keys:
        assert key in controller, key
    # The agent needs privileges, namespaces and netlink. The controller does not.
    own = {"CapabilityBoundingSet": [""], "RestrictNamespaces": ["yes"],
           "RestrictAddressFamilies": ["AF_UNIX AF_INET AF_INET6"],
           "SystemCallFilter": ["@system-service", "~@privileged @resources"]}  # fmt: skip
    for key in keys:
        assert controller[key] == own.get(key, agent[key]), key
    assert controller["DynamicUser"] == ["yes"]


def test_the_service_tells_systemd_when_it_is_ready_and_ends_at_sigterm(tmp_path):
    config, path = tmp_path / "controller.toml", tmp_path / "notify"
    config.write_text("[openflow]\nport = 0\n[agents]\nport = 0\n[http]\nport = 0\n")
    checked = run(command("ExecStartPre", config))
    assert (checked.returncode, checked.stdout) == (0, f"{config}: valid\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        systemd.settimeout(60)
        service = subprocess.Popen(
            command("ExecStart", config), env={"NOTIFY_SOCKET": str(path)}, stderr=subprocess.PIPE, text=True
        )
        try:
            assert systemd.recv(64) == b"READY=1"
            service.send_signal(signal.SIGTERM)
            _, log = service.communicate(timeout=60)
        finally:
            service.kill()
    assert service.returncode == 0 and "page at http://127.0.0.1:" in log


def test_a_wrong_configuration_is_not_tried_again(tmp_path):
    config = tmp_path / "controller.toml"
    config.write_text("[agents]\nsecret = 7\n")
    (code,) = settings(UNIT)["RestartPreventExitStatus"]
    # RestartPreventExitStatus does not apply to ExecStartPre, so systemd would restart the service after a
    # failed check. The prefix "-" makes systemd ignore the failure of the check.
    for unit in UNITS.glob("*.service"):
        assert all(line.startswith("-") for line in settings(unit)["ExecStartPre"]), unit.name
    for key in ("ExecStartPre", "ExecStart"):
        done = run(command(key, config))
        assert (done.returncode, len(done.stderr.splitlines())) == (int(code), 1), done.stderr


def test_a_credential_of_systemd_may_have_the_mode_of_an_access_list(tmp_path, monkeypatch):
    key = tmp_path / "keys_secret"
    key.touch()
    key.chmod(0o440)
    with pytest.raises(NarrowsError, match=r"http.key: .*: found mode 0440, expected 0600"):
        check_private("http.key", key)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    check_private("http.key", key)
    for mode in (0o444, 0o460, 0o404):
        key.chmod(mode)
        with pytest.raises(NarrowsError, match="found mode"):
            check_private("http.key", key)


def test_the_shipped_example_is_valid(tmp_path):
    example = UNITS.parent / "examples/controller.toml"
    config = tmp_path / "controller.toml"
    # The keys that are commented out are also checked. Some of them name files, which must exist.
    token = tmp_path / "page.token"
    token.write_text("0123456789abcdef" * 4)
    token.chmod(0o600)
    Keys(tmp_path, ("a",))
    text = re.sub(r"(?m)^# (\w+ = |\[)", r"\1", example.read_text())
    text = text.replace("/etc/narrows/agents.crt", str(tmp_path / "agents.trusted"))
    config.write_text(text.replace("/run/credentials/narrows-controller.service/keys_", f"{tmp_path}/"))
    done = run(command("ExecStartPre", config))
    assert (done.returncode, done.stdout) == (0, f"{config}: valid\n"), done.stderr
