"""Flows of unmodified programs: the scenario, the plan, and the files that a guest needs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from narrows import sweep
from narrows.backends.kernel import program
from narrows.backends.kernel.commands import commands
from narrows.backends.kernel.layout import lay_out
from narrows.backends.vm import foreign
from narrows.errors import NarrowsError
from narrows.scenario.inputs import digests
from narrows.scenario.load import expand, loads
from narrows.scenario.notes import notes
from narrows.scenario.resolve import resolve

UPLOAD = """
duration = "4s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
[[flows]]
cc = "reno"
start = "1s"
program = { server = "cat -p {port}", client = "head {server}:{port}/{x} {seconds}" }
"""
DOWNLOAD = UPLOAD.replace('client = "head', 'client_at = "to", port = 80, client = "head')


def plan(text, folder=Path()):
    scenario = loads(text).with_source(str(folder / "scenario.toml"))
    return resolve(scenario, ["cubic", "reno", "brf"], kernel="Linux")


def refused(text, folder=Path()):
    """The error message for this scenario or its programs."""
    with pytest.raises(NarrowsError) as caught:
        program.check(plan(text, folder))
    return str(caught.value)


def test_commands_get_the_servers_address_its_port_and_the_duration_of_the_flow():
    made = plan(UPLOAD)
    (call,) = program.calls(made, layout := lay_out(made))
    assert call.server == ["cat", "-p", "20000"]
    address = layout.endpoints[0].to_address
    assert call.client == ["head", f"{address}:20000/{{x}}", "3"], "other braces stay"
    assert (call.client_in, call.server_in) == tuple(
        layout.namespace(node) for node in (layout.endpoints[0].source, layout.endpoints[0].to)
    )
    assert (call.start, call.stop, call.port) == (1_000_000_000, 4_000_000_000, 20_000)


def test_the_client_of_a_download_runs_at_the_receiver():
    made = plan(DOWNLOAD)
    (call,) = program.calls(made, layout := lay_out(made))
    ends = layout.endpoints[0]
    assert call.client_in == layout.namespace(ends.to)
    assert call.client[1] == f"{ends.source_address}:80/{{x}}"


@pytest.mark.parametrize("text", [UPLOAD, DOWNLOAD])
def test_the_senders_route_sets_its_congestion_controller(text):
    made = plan(text)
    layout = lay_out(made)
    lines = [line for lines in commands(layout, "nrw-1-2-").addresses.values() for line in lines]
    routes = [line for line in lines if line.startswith("route add") and "congctl" in line]
    assert len(routes) == 1
    assert routes[0].startswith(f"route add {layout.endpoints[0].to_address}/32")
    assert routes[0].endswith("congctl reno")


def test_the_default_name_is_that_of_the_clients_program():
    assert plan(UPLOAD)["flows"][0]["name"] == "head"
    named = UPLOAD.replace("head {", "/usr/bin/env head {")
    assert plan(named)["flows"][0]["name"] == "env"


def test_the_simulator_runs_no_programs():
    with pytest.raises(NarrowsError, match=r"flows\.0\.program: found a program, expected --on kernel or vm"):
        sweep.run(loads(UPLOAD))


def test_an_error_of_real_stacks_is_not_replaced_by_the_simulators(backend):
    class Real(type(backend)):
        def check(self, plan):
            program.check(plan)

    with pytest.raises(NarrowsError, match=r"flows\.0\.program\.server: found 'no-such-program'"):
        sweep.run(loads(UPLOAD.replace("cat -p", "no-such-program")), backend=Real())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('start = "1s"', 'size = "1MB"', "expected no size with a program"),
        ('start = "1s"', "count = 2", "expected no count with a program"),
        ("cat -p", "./cat -p", "found './cat', expected a program that is installed, or './NAME'"),
        ('start = "1s"', 'transport = "udp"', "expected no transport with a program"),
        ('start = "1s"', 'from = ["s1"]', "expected one sender and one receiver with a program"),
        ("client =", 'protocol = "udp", client =', "expected no cc with a program whose protocol is udp"),
        ('cc = "reno"', 'cc = "brf"', "flows.0.cc: found brf with a program"),
        ("cat -p", "no-such-program", "found 'no-such-program', expected a program that is installed"),
        ("cat -p", "'cat -p", "expected a command as a shell would split it (no closing quotation)"),
        ("cat -p {port}", " ", "expected a program and its arguments"),
        ("client =", 'files = ["missing"], client =', "found 'missing', expected an existing file"),
        ("client =", "port = 0, client =", "flows.0.program.port"),
    ],
)
def test_what_a_program_cannot_have_is_refused_in_one_line(old, new, message):
    said = refused(UPLOAD.replace(old, new))
    assert message in said
    assert "\n" not in said


def test_two_servers_at_a_node_need_two_ports():
    entry = DOWNLOAD.partition("[[flows]]")[2]
    second = DOWNLOAD + "[[flows]]" + entry.replace('cc = "reno"', 'name = "b"')
    same = second.replace('kind = "dumbbell"', 'kind = "dumbbell"\npairs = 1')
    assert "found port 80, which flows.0 has at the same node" in refused(same)
    assert len(program.transports(plan(same.replace("port = 80", "port = 81", 1)))) == 2


def test_files_with_the_same_name_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_text("1")
    text = UPLOAD.replace("client =", 'files = ["a/x", "b/x"], client =')
    assert "found two files with the name x" in refused(text, tmp_path)
    single = plan(UPLOAD.replace("client =", 'files = ["a/x"], client ='), tmp_path)
    assert single["flows"][0]["transport"]["files"] == [str(tmp_path / "a/x")]


def test_a_program_may_be_one_of_the_files(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy2(shutil.which("cat"), tools / "mine")
    text = UPLOAD.replace("cat -p", "./tools/mine -p").replace("client =", 'files = ["tools"], client =')
    made = plan(text, tmp_path)
    program.check(made)
    assert program.calls(made, lay_out(made))[0].server[0] == "./tools/mine"
    in_guest = foreign.prepared(made)
    assert in_guest.plan["flows"][0]["transport"]["server"][0] == "./tools/mine"
    assert tools / "mine" in in_guest.files
    assert any(path.name.startswith("libc.so") for path in in_guest.files)


def test_names_whose_logs_would_be_the_same_are_refused():
    entry = UPLOAD.partition("[[flows]]")[2]
    both = (
        UPLOAD.replace('cc = "reno"', 'name = "a/b"')
        + "[[flows]]"
        + entry.replace('cc = "reno"', 'name = "a_b"')
    )
    expected = "flows.1.name: found 'a_b', whose logs would have the same names as the logs of flows.0"
    assert expected in refused(both)


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = UPLOAD.replace("client =", 'files = ["pipe"], client =')
    assert "found 'pipe', expected an existing file or folder" in refused(text, tmp_path)


def test_results_name_the_files_by_their_contents(tmp_path):
    (tmp_path / "www").mkdir()
    page = tmp_path / "www" / "page.html"
    found = []
    for content in ("one", "two", "one"):
        page.write_text(content)
        scenario = loads(UPLOAD.replace("client =", 'files = ["www"], client ='))
        found.append(digests([scenario], tmp_path))
    assert found[0] == found[2] != found[1]
    assert found[0].keys() == {"www"}


def test_programs_do_not_get_the_hint_about_start_jitter():
    entry = UPLOAD.partition("[[flows]]")[2]
    two = loads(UPLOAD + "[[flows]]" + entry.replace('cc = "reno"', 'name = "b"'))
    assert notes(expand(two)) == []


# --- guests ---


def files_of(server, tmp_path, more=""):
    made = plan(UPLOAD.replace("cat -p {port}", server).replace("client =", f"{more} client ="), tmp_path)
    return foreign.prepared(made)


def test_a_program_comes_with_its_libraries(tmp_path):
    found = files_of("cat -p {port}", tmp_path)
    cat = Path(shutil.which("cat"))
    assert found.plan["flows"][0]["transport"]["server"] == [str(cat), "-p", "{port}"]
    assert cat in found.files
    assert any(path.name.startswith("libc.so") for path in found.files)


def test_a_script_comes_with_its_interpreter(tmp_path):
    script = tmp_path / "serve"
    script.write_text("#!/usr/bin/env -S sh\necho\n")
    script.chmod(0o755)
    found = files_of(str(script), tmp_path)
    assert {script, Path(shutil.which("sh"))} <= found.files


def test_python_comes_with_its_standard_library(tmp_path):
    found = files_of(f"{sys.executable} -m http.server {{port}}", tmp_path)
    assert found.plan["flows"][0]["transport"]["server"][0] == sys.executable
    names = {path.name for path in found.files}
    assert {"http", "server.py"} & names and "socket.py" in names


def test_named_folders_and_the_libraries_of_named_programs_are_included(tmp_path):
    folder = tmp_path / "www"
    folder.mkdir()
    (folder / "page.html").write_text("hello")
    shutil.copy2(shutil.which("cat"), folder / "tool")
    found = files_of("cat -p {port}", tmp_path, 'files = ["www"],')
    assert {folder / "page.html", folder / "tool"} <= found.files


def test_a_file_that_is_no_program_is_refused_before_a_boot(tmp_path):
    text = tmp_path / "notes"
    text.write_text("not a program")
    text.chmod(0o755)
    with pytest.raises(NarrowsError, match="expected a program for this processor, or a script") as caught:
        files_of(str(text), tmp_path)
    assert "flows.0.program.server" in str(caught.value)


def test_files_beyond_the_guests_memory_are_refused(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(600 << 20)
    with pytest.raises(NarrowsError, match=r"found programs with 6.. MB of files, expected at most 512 MB"):
        files_of("cat -p {port}", tmp_path, 'files = ["huge"],')


def test_a_script_is_started_by_its_interpreter_and_loops_are_refused(tmp_path):
    for name, first in (("serve", f"#!{sys.executable} -u"), ("loop", f"#!{tmp_path}/loop")):
        (tmp_path / name).write_text(f"{first}\nprint()\n")
        (tmp_path / name).chmod(0o755)
    found = files_of("./serve {port}", tmp_path, 'files = ["serve"],')
    server = found.plan["flows"][0]["transport"]["server"]
    assert server == [sys.executable, "-u", "./serve", "{port}"]
    with pytest.raises(NarrowsError, match="expected a program for this processor"):
        files_of(str(tmp_path / "loop"), tmp_path)
