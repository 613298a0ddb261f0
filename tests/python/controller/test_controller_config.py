"""Errors in the controller's configuration give one line and exit code 2."""

from __future__ import annotations

import subprocess
import sys

import pytest
from narrows.controller.alerts import AgentRule, FlowRule, QueueRule, Rules
from narrows.controller.config import load
from narrows.controller.serve import check_files
from narrows.errors import NarrowsError

FULL = """
name = "east"
[openflow]
host = "0.0.0.0"
[agents]
key = "c.key"
certificate = "c.crt"
trusted = "agents.crt"
host = "192.0.2.1"
[forwarding]
lldp = "500ms"
host_idle = "1min"
[detection]
poll = "50ms"
[alerts]
alertmanagers = ["http://192.0.2.9:9093", "https://[2001:db8::1]/am"]
page = "https://192.0.2.1:6680"
[alerts.queue]
above = "10ms"
for = "5s"
severity = "critical"
[alerts.agent]
silent = "3s"
expected = ["s1", "s2"]
[alerts.flow]
below = "50%"
for = "1min"
[[ports]]
port = "0x1:2"
rate = "100mbit"
delay = "5ms"
[[paths]]
from = "10.0.0.1"
to = "FD00::0:2"
ports = ["s1/eth1", "s2/eth0"]
"""


def test_a_file_with_every_key(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(FULL)
    config = load(path, {"http.port": 8080})
    params = config.params()
    assert (config.name, config.http.port, config.openflow.port) == ("east", 8080, 6653)
    assert (params.lldp_ns, params.host_idle_s, params.poll_ns) == (500_000_000, 60, 50_000_000)
    assert config.alerts.rules() == Rules(
        QueueRule(10_000_000, 5_000_000_000, "critical"),
        AgentRule(3_000_000_000, ("s1", "s2")),
        FlowRule(0.5, 60_000_000_000),
    )
    port = params.ports[(1, 2)]
    assert (port.rate_bps, port.delay_ns) == (100_000_000, 5_000_000)
    assert params.paths == {("10.0.0.1", "fd00::2"): ("s1/eth1", "s2/eth0")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[open", "not TOML"),
        ("[openflw]", "openflw: unknown key; nearest is 'openflow'"),
        ("[http]\nprot = 1", "http.prot: unknown key; nearest is 'port'"),
        ("[http]\nport = 99999", "http.port: found 99999, expected less than or equal to 65535"),
        ("[detection]\npoll = 100", "detection.poll: found 100, expected a time such as"),
        ("[forwarding]\nlldp = '0s'", "forwarding.lldp: found '0s', expected a time from 1ms to 24h"),
        ("[forwarding]\nlldp = '4s'", "forwarding.link_expire: found 5s, expected at least twice"),
        (
            "[[ports]]\nport = 'x'",
            "ports.0.port: found 'x', expected a switch's datapath id and a port number",
        ),
        ("[[ports]]\nport = '1:1'\ncounted = 'no'", "ports.0.counted: found 'no', expected true or false"),
        (
            "[[ports]]\nport = '1:1'\n[[ports]]\nport = '0x1:1'",
            "ports.1.port: found '0x1:1' a second time, expected it once",
        ),
        ("[[ports]]\nport = '1:1'\nrat = 1", "ports.0.rat: unknown key; nearest is 'rate'"),
        (
            "[agents]\nhost = '0.0.0.0'",
            "agents.host: found '0.0.0.0' without keys, expected files as agents.key, agents.certificate and",
        ),
        ("[agents]\nkey = 'k'\ntrusted = 't'", "agents.certificate: not found, expected all or none of"),
        (
            "[agents]\nsecret = 'secret.hex'",
            "agents.secret: found the secret of an earlier version, expected agents.key, agents.certificate "
            "and agents.trusted: make them with 'narrows-agent key NAME'",
        ),
        (
            "[http]\nhost = '0.0.0.0'",
            "http.host: found '0.0.0.0' without a token, expected a file as http.token",
        ),
        (
            "[http]\nkey = 'k'",
            "http.certificate: not found, expected all or none of http.key, http.certificate",
        ),
        ("[openflow]\nkey = 'k'\nca = 'c'", "openflow.certificate: not found, expected all or none"),
        ("[openflow]\nconnections = 0", "openflow.connections: found 0, expected greater than or equal to 1"),
        (
            "[alerts]\nalertmanagers = ['http://a']",
            "alerts.alertmanagers: found addresses without a threshold, expected one of the tables",
        ),
        (
            "[alerts]\nalertmanagers = ['ftp://a']",
            "alerts.alertmanagers.0: found 'ftp://a', expected an address such as 'http://127.0.0.1:9093'",
        ),
        ("[alerts]\nalertmanagers = ['http://u:p@a']", "without a user, query or fragment"),
        ("[alerts]\nalertmanagers = ['http://a:99999']", "expected an address such as"),
        ("[alerts]\nqueu = 1", "alerts.queu: unknown key; nearest is 'queue'"),
        ("[alerts.queue]\nfor = '1s'", "alerts.queue.above: found nothing, expected this key"),
        ("[alerts.queue]\nabove = '1ms'\nfro = '1s'", "alerts.queue.fro: unknown key; nearest is 'for'"),
        ("[alerts.queue]\nabove = 3", "alerts.queue.above: found 3, expected a time such as"),
        (
            "[alerts.queue]\nabove = '1ms'\nseverity = 'x'",
            "alerts.queue.severity: found 'x', expected 'info'",
        ),
        ("[alerts.flow]\nbelow = 2", "alerts.flow.below: found 2, expected a share such as"),
        ("[alerts.agent]\nexpected = ['a b']", "alerts.agent.expected.0: found 'a b'"),
        ("http = 3", "http: found 3, expected a table"),
        ("name = 'a b'", "name: found 'a b', expected 1 to 64 printable characters"),
        ("name = 3", "name: found 3, expected a string in quotes"),
        ("[[http]]", "http: found a list of 1, expected a table"),
        ("ports = 3", "ports: found 3, expected a list"),
        (
            "[[paths]]\nfrom = 'x'\nto = '10.0.0.2'\nports = ['a/b']",
            "paths.0.from: found 'x', expected an IP address",
        ),
        (
            "[[paths]]\nfrom = '10.0.0.1'\nto = '10.0.0.2'\nports = ['eth1']",
            "paths.0.ports.0: found 'eth1', expected an agent and one of its interfaces, e.g. 'edge1/eth1'",
        ),
        (
            2 * "[[paths]]\nfrom = '10.0.0.1'\nto = '10.0.0.2'\nports = ['a/b']\n",
            "paths.1: found a second path from 10.0.0.1 to 10.0.0.2, expected one",
        ),
        ("[http]\nport = true", "http.port: found true, expected a whole number"),
        ("[http]\nport = '80'", "http.port: found '80', expected a whole number"),
        ("[http]\ntoken = 3", "http.token: found 3, expected the name of a file"),
        ("[openflow]\nconnections = 1.5", "openflow.connections: found 1.5, expected a whole number"),
        ("[alerts.agent]\nexpected = [3]", "alerts.agent.expected.0: found 3, expected a string in quotes"),
        ("[http]\nhost = ''", "http.host: found '', expected an address such as '127.0.0.1', or the name"),
        ("[http]\nhost = ''\ntoken = 't'", "http.host: found '', expected an address such as"),
        ("[openflow]\nhost = ''", "openflow.host: found '', expected an address such as"),
        ("[agents]\nhost = ' '", "agents.host: found ' ', expected an address such as"),
        ("[standby]\nname = 'b'\nhost = ''", "standby.host: found '', expected an address such as"),
    ],
)
def test_an_error_gives_a_one_line_error(tmp_path, text, message):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(NarrowsError) as error:
        load(path, {})
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_prints_the_error_and_exits_with_2(tmp_path):
    command = [sys.executable, "-m", "narrows.cli.main", "controller"]
    done = subprocess.run(
        [*command, "--config", str(tmp_path / "none.toml")], capture_output=True, text=True, check=False
    )
    assert (
        done.returncode == 2
        and done.stderr.count("\n") == 1
        and "found no file, expected a configuration" in done.stderr
    )
    done = subprocess.run([*command, "--secret", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "make them with 'narrows-agent key NAME'" in done.stderr
    done = subprocess.run(
        [*command, "--http-port", "8080", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "controller: valid\n")


@pytest.mark.parametrize(("mode", "reason"), [(0o644, "found mode 0644, expected 0600"), (0o600, "")])
def test_check_reads_the_files_that_the_configuration_names(tmp_path, mode, reason):
    token = tmp_path / "token"
    token.write_text("ab" * 32)
    token.chmod(mode)
    command = [sys.executable, "-m", "narrows", "controller", "--http-token", str(token), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if reason else 0)
    assert reason in done.stderr and done.stderr.count("\n") == bool(reason)


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("Bearer abc", 0o600, ""),
        ("Bearer abc", 0o644, "alerts.authorization: {file}: found mode 0644, expected 0600"),
        ("abc", 0o600, "found something else, expected one line such as 'Bearer TOKEN'"),
        ("Bearer a\nX: y", 0o600, "found something else"),
        ("Bearer \u00fc", 0o600, "found something else"),
    ],
)
def test_check_reads_the_authorization_for_alertmanagers(tmp_path, text, mode, reason):
    file = tmp_path / "authorization"
    file.write_text(text)
    file.chmod(mode)
    config = load(None, {"alerts.authorization": str(file)})
    if not reason:
        check_files(config)
        return
    with pytest.raises(NarrowsError) as error:
        check_files(config)
    assert reason.format(file=file) in str(error.value) and "abc" not in str(error.value)
