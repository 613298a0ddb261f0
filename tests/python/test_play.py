"""`narrows play`: the scenario in the page's address, and the scenarios that the page cannot run."""

from __future__ import annotations

import base64
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import narrows as package
import pytest
from narrows import playground
from narrows.cli import play as work
from narrows.playground.text import scenario_text
from narrows.scenario.load import load, loads
from playground_lab import DONE, TEXT, TWO_FLOWS, goodputs
from test_playground import PRESETS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page that only shows its address."""
    place = tmp_path / "a folder & more" / "narrows-play.html"
    place.parent.mkdir()
    place.write_text("<!doctype html><title>page</title>")
    monkeypatch.setattr(playground, "PAGE", place)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return place


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(TWO_FLOWS + "# <script>alert(1)</script> €\n", encoding="utf-8")
    return path


def unpacked(fragment: str) -> str:
    body = fragment.removeprefix("#").removeprefix("s=")
    packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    return zlib.decompress(packed, wbits=-zlib.MAX_WBITS).decode()


def target(redirect: Path | str) -> str:
    text = redirect.read_text() if isinstance(redirect, Path) else redirect
    (found,) = re.findall(r'location\.replace\("([^"]+)"\)', text)
    return found


def test_the_address_holds_the_scenario(narrows, page, scenario):
    code, out, err = narrows("play", scenario, "--no-browser")
    assert (code, err) == (0, "")
    address, _, body = target(Path(out.strip())).partition("#")
    assert address == page.as_uri()
    assert unpacked(f"#{body}") == scenario.read_text()


def test_the_browser_gets_a_file(narrows, page, scenario, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    code, out, _ = narrows("play", scenario)
    assert (code, out) == (0, f"opened {opened[0].removeprefix('file://')}\n")
    code, out, _ = narrows("play")
    assert opened[1] == page.as_uri()
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    code, out, _ = narrows("play")
    assert (code, out) == (0, f"found no browser; open this file: {page}\n")


NEEDS = {
    'rate = "10mbit"': ('trace = { file = "lte.csv" }', "topology.trace.file: found 'lte.csv', expected "),
    'cc = "cubic"': ('cc = "own.py:Own"', "flows.0.cc: found 'own.py:Own', expected a built-in "),
    'cc = "reno"': ('cc = "reno"\ntransport = "quinn"', "flows"),
}


@pytest.mark.parametrize("old", NEEDS)
def test_what_the_page_cannot_run_is_refused_in_one_line(narrows, page, scenario, old):
    new, error = NEEDS[old]
    (scenario.parent / "lte.csv").write_text("0,10mbit\n1,5mbit\n")
    (scenario.parent / "own.py").write_text(
        "import narrows\nclass Own(narrows.CongestionController):\n    pass\n"
    )
    scenario.write_text(TWO_FLOWS.replace(old, new))
    code, out, err = narrows("play", scenario)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{scenario}: {error}")
    assert "this program" not in err


def test_a_package_without_the_page_says_where_it_comes_from(narrows, scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(playground, "PAGE", tmp_path / "missing.html")
    code, out, err = narrows("play", scenario)
    assert (code, out) == (2, "")
    assert err == (
        "found no playground page in this package, expected a package from a release; in a clone, run "
        "`make web`\n"
    )


@pytest.mark.parametrize("text", ["flows = [", "", 'name = "\x00"', "[[flows]]\ncc = 1\n"])
def test_a_scenario_that_is_not_valid_is_refused_as_by_check(narrows, page, scenario, text):
    scenario.write_text(text)
    code, _, err = narrows("play", scenario)
    assert (code, err) == (narrows("check", scenario)[0], narrows("check", scenario)[2]) and code == 2
    assert err.count("\n") == 1


def test_a_scenario_that_is_too_long_for_an_address_is_refused(narrows, page, scenario, monkeypatch):
    monkeypatch.setattr(playground, "MOST_BYTES", 100)
    code, _, err = narrows("play", scenario)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"{scenario}: found {scenario.stat().st_size} bytes, expected at most 100, ")


def test_a_file_that_cannot_be_read_is_refused_as_by_check(narrows, page, tmp_path):
    missing = tmp_path / "missing.toml"
    code, _, err = narrows("play", missing)
    assert (code, err) == (2, f"{missing}: found no file, expected a scenario\n")
    # `file` is not a folder, so `file/my.toml` cannot be read.
    (tmp_path / "file").touch()
    code, _, err = narrows("play", tmp_path / "file/my.toml")
    assert (code, err) == (2, narrows("check", tmp_path / "file/my.toml")[2])


def test_a_pipe_is_refused_in_one_line(narrows, page, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    code, out, err = narrows("play", tmp_path / "pipe")
    assert (code, out) == (2, "")
    assert err == f"{tmp_path / 'pipe'}: found no regular file, expected a scenario or a folder\n"


def test_a_browser_gets_a_short_address_of_the_server(page, scenario, monkeypatch):
    """Linux limits an argument of a program to 128 KiB, and an address can be longer."""
    monkeypatch.setattr(playground, "fragment", lambda text: "#s=" + "A" * 500_000)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(work._Server, "serve_forever", lambda server: None)
    work.play(scenario, 0, browser=True)
    work.play(None, 0, browser=True)
    assert [re.sub(r":\d+/", ":PORT/", address) for address in opened] == [
        "http://127.0.0.1:PORT/scenario",
        "http://127.0.0.1:PORT/",
    ]


def test_a_server_gives_the_page_and_nothing_else(page, scenario):
    code = (
        "import sys; from pathlib import Path; from narrows import playground; from narrows.cli import play\n"
        "playground.PAGE = Path(sys.argv[1]); play.play(Path(sys.argv[2]), 0, browser=False)"
    )
    command = [sys.executable, "-c", code, page, scenario]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        root = address.removesuffix("scenario")
        way = target(urllib.request.urlopen(address).read().decode())
        assert way.startswith("/#") and unpacked(way.removeprefix("/")) == scenario.read_text()
        assert urllib.request.urlopen(root).read() == page.read_bytes()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{root}my.toml")
        # A browser that closes its connection early causes no message.
        with socket.create_connection(("127.0.0.1", urlsplit(root).port)) as early:
            early.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            early.sendall(b"GET /")
        assert urllib.request.urlopen(root).read() == page.read_bytes()
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 130
        assert server.stderr is not None
        assert server.stderr.read() == ""


def test_a_port_in_use_is_one_line(narrows, page, scenario):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = narrows("play", scenario, "--port", port, "--no-browser")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"--port: found {port}, expected a free port (")


SCENARIOS = sorted([*(ROOT / "scenarios").rglob("*.toml"), *PRESETS])


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_recorded_scenarios_are_written_as_toml(path):
    full = load(path).full()
    assert loads(scenario_text({"scenario": full}), str(path)).full() == full


def test_texts_and_keys_need_quotes_in_toml():
    import tomllib

    data = {
        "a b": '"\\\n\x7f€',
        "n": float("inf"),
        "t": {"x.y": {"z": [1.5, True]}},
        "flows": [{"a": []}, {}],
    }
    assert tomllib.loads(scenario_text({"scenario": data})) == data


def test_the_scenario_of_results_is_opened(narrows, page, scenario, tmp_path):
    package.run(load(scenario, {"topology.rate": "7mbit"}), out=tmp_path / "out")
    code, out, err = narrows("play", tmp_path / "out", "--no-browser")
    assert (code, err) == (0, "")
    text = unpacked(target(Path(out.strip())).partition("#")[2])
    assert 'rate = "7mbit"' in text
    code, _, err = narrows("play", tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert "expected a folder of results" in err


def test_a_report_leads_to_the_playground(page, scenario, tmp_path, monkeypatch):
    pytest.importorskip("altair")
    from narrows.report import single
    from narrows.results.results import Results

    package.run(load(scenario), out=tmp_path / "out")
    html = single(Results.read(tmp_path / "out"))
    (address,) = re.findall(r'<p class="small" id="play"><a href="([^"]+)"', html)
    assert unpacked(address.partition("#")[2]).count("[[flows]]") == 2
    command = f"<code>narrows play {tmp_path / 'out'}</code>"
    assert command in html
    monkeypatch.setattr(playground, "PAGE", tmp_path / "missing.html")
    html = single(Results.read(tmp_path / "out"))
    (shown,) = re.findall(r'<p class="small" id="play">(.*)</p>', html)
    assert shown == f"To simulate this scenario in your browser, run {command}."


def limit(file: str, name: str) -> int:
    """A constant of the page."""
    (found,) = re.findall(
        rf"^(?:export )?const {name} = ([\d_]+);", (ROOT / "web/src" / file).read_text(), re.M
    )
    return int(found)


def test_the_page_and_the_command_have_the_same_limits():
    assert limit("sweep.ts", "MOST_POINTS") == playground.MOST_POINTS
    assert limit("url.ts", "MOST_BYTES") == playground.MOST_BYTES


def test_the_limits_of_the_page_are_documented():
    _, _, section = (ROOT / "LIMITATIONS.md").read_text().partition("## The playground\n")
    section, _, _ = section.partition("\n## ")
    seeds, lines = limit("state.ts", "MOST_SEEDS"), limit("charts/lines.ts", "MOST_LINES")
    for line in (
        f"first {playground.MOST_POINTS} points of a sweep, with at most {seeds} seeds",
        f"show at most {lines} flows, and the table of results {limit('results.ts', 'MOST_ROWS')} ",
        f"ends at {limit('worker.ts', 'MOST_SAMPLES'):,} samples",
        f"up to {playground.MOST_BYTES:,} bytes",
    ):
        assert line in section


def test_the_page_opens_with_the_scenario(narrows, browser: Any, built, monkeypatch, scenario):
    monkeypatch.setattr(playground, "PAGE", built)
    _, out, _ = narrows("play", scenario, "--no-browser")
    page = browser.new_page()
    page.goto(Path(out.strip()).as_uri())
    page.wait_for_selector(DONE, timeout=60_000)
    assert page.evaluate(TEXT) == scenario.read_text()
    assert set(goodputs(page)) == {"cubic", "reno"}
    page.close()
