"""Every path of the page requires a token. If the page listens only on loopback, the token is optional."""

from __future__ import annotations

import base64
import socket
import ssl
import subprocess
import sys

import httpx
import pytest
from running_controller import Controller
from shown_controller import runtime, served

TOKEN = "5e" * 32
PATHS = [
    "/",
    "/page.js",
    "/page.css",
    "/api/v1/state",
    "/api/v1/events",
    "/api/v1/live",
    "/api/v1/history?port=x",
    "/api/v1/alerts",
    "/metrics",
    "/uplot.js",
    "/api/v1/openapi.json",
]


def basic(password, user="operator"):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def url():
    with served(runtime(empty=True), loopback=False, token=TOKEN) as address:
        yield address


@pytest.mark.parametrize("path", [*PATHS, "/none"])
def test_every_path_requires_the_token(url, path):
    answer = httpx.get(url + path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")
    assert "narrows.controller" not in answer.text and "switch" not in answer.text


@pytest.mark.parametrize(
    "authorization",
    [
        "", "Basic", "Basic !", "Basic " + base64.b64encode(b"\xff\xfe").decode(), "Digest x", "Bearer",
        basic(""), basic(TOKEN[:-1]), basic(TOKEN + "0"), basic("x", user=TOKEN), f"Bearer {TOKEN[:-2]}",
        f"Token {TOKEN}", TOKEN,
    ],
)  # fmt: skip
def test_anything_else_is_refused(url, authorization):
    answer = httpx.get(f"{url}/api/v1/state", headers={"authorization": authorization})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "authorization", [basic(TOKEN), basic(TOKEN, user=""), f"Bearer {TOKEN}", f"bearer {TOKEN}"]
)
def test_the_token_is_accepted(url, authorization):
    for path in set(PATHS) - {"/api/v1/live"}:
        assert httpx.get(url + path, headers={"authorization": authorization}).status_code == 200


def test_loopback_needs_no_token():
    with served(runtime(empty=True)) as address:
        assert httpx.get(f"{address}/api/v1/state").status_code == 200


def test_a_token_on_loopback_is_required_too():
    with served(runtime(empty=True), token=TOKEN) as address:
        assert httpx.get(f"{address}/api/v1/state").status_code == 401


@pytest.fixture
def files(tmp_path):
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=page"]
    subprocess.run(
        [*command, "-keyout", tmp_path / "key.pem", "-out", tmp_path / "page.pem"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "token").chmod(0o600)
    return tmp_path


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def refusal(*arguments):
    command = [sys.executable, "-m", "narrows.cli.main", "controller", "--openflow-port", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    return done.stderr


def test_the_page_by_tls_with_the_token(files):
    port = free_port()
    controller = Controller(
        files, "--http-host", "0.0.0.0", "--http-token", str(files / "token"), "--http-key",
        str(files / "key.pem"), "--http-certificate", str(files / "page.pem"), "--http-port", str(port),
    )  # fmt: skip
    try:
        trusted = ssl.create_default_context(cafile=str(files / "page.pem"))
        trusted.check_hostname = False
        transport = httpx.HTTPTransport(retries=5, verify=trusted)
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", transport=transport) as client:
            assert client.get("/").status_code == 401
            assert client.get("/", auth=("any", TOKEN)).status_code == 200
            with pytest.raises(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/", auth=("any", TOKEN))
        assert "page at https://0.0.0.0:" in controller.log.read_text()
        assert TOKEN not in controller.log.read_text()
    finally:
        controller.close()


def test_no_start_beyond_loopback_without_a_token():
    assert "http.host: found '0.0.0.0' without a token" in refusal("--http-host", "0.0.0.0")


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("token", 0o644, "http.token: {file}: found mode 0644, expected 0600"),
        ("token", 0o660, "found mode 0660, expected 0600"),
        ("key.pem", 0o640, "http.key: {file}: found mode 0640, expected 0600"),
    ],
)
def test_files_that_others_can_read_are_refused(files, name, mode, message):
    (files / name).chmod(mode)
    said = refusal(
        "--http-token", str(files / "token"), "--http-key", str(files / "key.pem"), "--http-certificate",
        str(files / "page.pem"),
    )  # fmt: skip
    assert message.format(file=files / name) in said


def test_a_short_token_is_refused(files):
    (files / "token").write_text("1234\n")
    assert "expected at least 64 hexadecimal digits" in refusal("--http-token", str(files / "token"))


def test_a_certificate_that_is_none_is_refused(files):
    (files / "page.pem").write_text("none\n")
    said = refusal("--http-key", str(files / "key.pem"), "--http-certificate", str(files / "page.pem"))
    assert "http: cannot use" in said
