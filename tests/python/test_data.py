"""`narrows data`: the catalogue, the data folder, and downloads from a server on loopback."""

from __future__ import annotations

import dataclasses
import errno
import functools
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from narrows.data import fetch as fetching
from narrows.data.catalogue import DATA_SETS, Columns, DataFile, DataSet
from narrows.data.folder import State, data_folder, state
from narrows.studies.load import find_study, known_studies, load_study

REPOSITORY = Path(__file__).resolve().parents[2]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A folder that a local server serves as the mirror."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv(fetching.MIRROR, f"http://127.0.0.1:{server.server_port}/")
        yield folder
        server.shutdown()
        thread.join()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def trace(name, content):
    return DataFile(f"traces/{name}", len(content), sha256(content), f"https://example.org/files/{name}")


def data_set(*files, by_hand=""):
    return DataSet("example", "An example", "MIT", "https://example.org", "Nobody: Nothing", files, by_hand)


@pytest.fixture
def catalogue(monkeypatch):
    def replace(data):
        for module in ("narrows.data.fetch", "narrows.cli.data"):
            monkeypatch.setattr(f"{module}.DATA_SETS", (data,))

    return replace


# --- the catalogue


def test_every_recorded_trace_of_a_study_is_in_the_catalogue():
    used = {
        value["file"]
        for name in known_studies()
        for experiment in load_study(find_study(name)).experiments
        if experiment.recorded is not None
        for value in experiment.recorded.values
    }
    listed = [file.path for data in DATA_SETS for file in data.files]
    assert len(used) == 5 and used <= set(listed)
    assert len(listed) == len(set(listed))


def test_each_data_set_says_how_to_get_it():
    for data in DATA_SETS:
        assert data.licence and data.citation and data.source.startswith("https://")
        assert data.is_fetchable != bool(data.by_hand)
        for file in data.files:
            assert (len(file.sha256) == 64) == data.is_fetchable
            assert (file.extract is not None) == bool(file.download_sha256)
            assert not file.url or len(file.url.split("/")[5]) == 40


def test_the_files_of_a_given_data_folder_match_the_catalogue():
    """Checks real files if NARROWS_DATA is set."""
    folder = data_folder()
    states = {file.path: state(file, folder) for data in DATA_SETS for file in data.files}
    assert State.DIFFERENT not in states.values(), states


# --- the folder


def test_the_option_precedes_the_variable_and_the_variable_the_user_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("NARROWS_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "option") == tmp_path / "option"
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("NARROWS_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert data_folder() == tmp_path / "narrows"


def test_a_study_refuses_a_data_folder_that_does_not_exist(narrows, tmp_path):
    code, out, err = narrows("study", "brf", "--data", tmp_path / "no", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith("--data: found ") and err.endswith("expected a folder that exists\n")
    assert not (tmp_path / "out").exists()


# --- the list


def test_the_list_shows_present_files(narrows, tmp_path, catalogue):
    good, bad = b"1\n2\n", b"3\n4\n"
    catalogue(data_set(trace("good", good), trace("bad", bad), trace("none", b"5\n")))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "good").write_bytes(good)
    (tmp_path / "traces" / "bad").write_bytes(b"other")
    code, out, _ = narrows("data", "--data", tmp_path)
    assert code == 0
    assert out.startswith(
        f"data folder: {tmp_path}\n\nexample: An example\n  files:    1 of 3 present, 0 kB\n"
    )
    for line in ("good: present", "bad: different checksum", "none: missing"):
        assert f"    traces/{line}\n" in out
    for line in ("licence:  MIT", "source:   https://example.org", "cite:     Nobody: Nothing"):
        assert f"  {line}\n" in out
    assert "  get it:   narrows data fetch example\n" in out
    code, out, _ = narrows("data", "--data", tmp_path, "--json")
    facts = json.loads(out)
    assert facts["folder"] == str(tmp_path)
    assert [file["state"] for file in facts["data_sets"][0]["files"]] == [
        "present",
        "different checksum",
        "missing",
    ]


def test_the_list_of_the_real_catalogue(narrows, tmp_path):
    code, out, _ = narrows("data", "--data", tmp_path / "none")
    assert code == 0 and out.startswith(f"data folder: {tmp_path / 'none'} (does not exist)\n")
    assert "get it:   narrows data fetch mahimahi-lte\n" in out
    assert "get it:   Download 5Gophers 1.0 from the source." in out


# --- downloads


def test_a_download_is_verified_and_written_once(narrows, tmp_path, mirror, catalogue):
    first, second = b"1\n2\n", b"3\n4\n"
    catalogue(data_set(trace("first", first), trace("second", second)))
    (mirror / "first").write_bytes(first)
    (mirror / "second").write_bytes(second)
    folder = tmp_path / "data"
    code, out, err = narrows("data", "fetch", "example", "--data", folder)
    assert code == 0
    assert out == f"{folder / 'traces' / 'first'}\n{folder / 'traces' / 'second'}\n"
    assert err.count("downloading http://127.0.0.1:") == 2
    assert sorted(path.name for path in (folder / "traces").iterdir()) == ["first", "second"]
    assert (folder / "traces" / "first").read_bytes() == first
    code, out, err = narrows("data", "fetch", "example", "--data", folder)
    assert (code, out, err) == (0, f"example: all files are present in {folder}\n", "")


def failing(narrows, folder, *names):
    code, out, err = narrows("data", "fetch", *names, "--data", folder)
    assert (code, out) == (2, "")
    assert not folder.exists()
    lines = [line for line in err.splitlines() if not line.startswith("downloading ")]
    assert len(lines) == 1
    return lines[0]


def test_a_wrong_checksum_leaves_nothing_behind(narrows, tmp_path, mirror, catalogue):
    catalogue(data_set(trace("first", b"1\n"), trace("second", b"2\n")))
    (mirror / "first").write_bytes(b"1\n")
    (mirror / "second").write_bytes(b"changed\n")
    line = failing(narrows, tmp_path / "data", "example")
    assert line.startswith("data: cannot download http://127.0.0.1:")
    assert sha256(b"2\n") in line and sha256(b"changed\n") in line
    assert line.endswith("; nothing was written")


def test_a_missing_file_on_the_server_leaves_nothing_behind(narrows, tmp_path, mirror, catalogue):
    catalogue(data_set(trace("first", b"1\n")))
    assert failing(narrows, tmp_path / "data", "example").endswith(
        "/first: HTTP status 404; nothing was written"
    )


def test_a_missing_network_gives_a_one_line_error(narrows, tmp_path, monkeypatch, catalogue):
    catalogue(data_set(trace("first", b"1\n")))
    monkeypatch.setenv(fetching.MIRROR, "http://127.0.0.1:1")
    line = failing(narrows, tmp_path / "data", "example")
    assert line == (
        "data: cannot download http://127.0.0.1:1/first: no connection to the server; nothing was written"
    )


def test_an_unknown_name_gives_a_one_line_error(narrows, tmp_path):
    line = failing(narrows, tmp_path / "data", "mahimahi")
    assert line == (
        "data: found 'mahimahi', expected one of mahimahi-lte, ucc-5g, 5gophers; nearest is 'mahimahi-lte'"
    )


def test_a_data_set_without_a_download_says_how_to_get_it(narrows, tmp_path):
    line = failing(narrows, tmp_path / "data", "5gophers")
    assert line.startswith("data: 5gophers has no download. Download 5Gophers 1.0 from the source.")


def test_downloads_without_pooch_name_the_extra(narrows, tmp_path, mirror, monkeypatch, catalogue):
    catalogue(data_set(trace("first", b"1\n")))
    monkeypatch.setitem(sys.modules, "pooch", None)
    line = failing(narrows, tmp_path / "data", "example")
    assert line == "data: pooch not installed; try: pip install 'narrows[data]'"


def test_a_changed_file_is_not_overwritten(narrows, tmp_path, mirror, catalogue):
    catalogue(data_set(trace("first", b"1\n")))
    (mirror / "first").write_bytes(b"1\n")
    mine = tmp_path / "data" / "traces" / "first"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine\n")
    code, _, err = narrows("data", "fetch", "example", "--data", tmp_path / "data")
    assert code == 2
    assert err == f"{mine}: found another SHA-256 than expected; remove the file, then fetch it\n"
    assert mine.read_bytes() == b"mine\n"


def contents(folder):
    return sorted((str(path.relative_to(folder)), path.is_dir()) for path in folder.rglob("*"))


@pytest.fixture
def two_files(mirror, catalogue):
    catalogue(data_set(trace("first", b"1\n"), trace("second", b"2\n")))
    (mirror / "first").write_bytes(b"1\n")
    (mirror / "second").write_bytes(b"2\n")


def refused(narrows, folder):
    """Runs a fetch that must fail, and returns the error message."""
    code, out, err = narrows("data", "fetch", "example", "--data", folder)
    assert (code, out) == (2, "")
    return err


def test_a_folder_in_the_place_of_a_file_is_refused_before_the_download(narrows, tmp_path, two_files):
    folder = tmp_path / "data"
    (folder / "traces" / "second").mkdir(parents=True)
    before = contents(folder)
    expected = f"{folder / 'traces' / 'second'}: found a folder, expected a file or nothing\n"
    assert refused(narrows, folder) == expected
    assert contents(folder) == before


@pytest.mark.parametrize("place", ["data", "data/traces"])
def test_a_file_in_the_place_of_a_folder_is_refused_before_the_download(narrows, tmp_path, two_files, place):
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    assert refused(narrows, tmp_path / "data") == f"{file}: found a file, expected a folder\n"
    assert file.read_text() == "mine"


def test_a_folder_that_is_not_writable_is_refused_before_the_download(
    narrows, tmp_path, two_files, monkeypatch
):
    monkeypatch.setattr(fetching.os, "access", lambda path, mode: False)  # for root, every folder is writable
    expected = f"{tmp_path}: found a folder that is not writable, expected a writable one\n"
    assert refused(narrows, tmp_path / "data") == expected
    assert not (tmp_path / "data").exists()


def test_all_data_sets_are_checked_before_the_first_download(narrows, tmp_path, mirror, monkeypatch):
    (mirror / "first").write_bytes(b"1\n")
    known = (
        dataclasses.replace(data_set(trace("first", b"1\n")), name="one"),
        data_set(trace("second", b"2\n")),
    )
    monkeypatch.setattr("narrows.data.fetch.DATA_SETS", known)
    (tmp_path / "data" / "traces" / "second").mkdir(parents=True)
    before = contents(tmp_path / "data")
    code, out, err = narrows("data", "fetch", "one", "example", "--data", tmp_path / "data")
    assert (code, out) == (2, "") and "downloading" not in err
    assert contents(tmp_path / "data") == before


@pytest.mark.parametrize("exists", [False, True])
def test_a_file_that_cannot_be_written_leaves_the_folder_as_before(
    narrows, tmp_path, two_files, monkeypatch, exists
):
    folder = tmp_path / "data"
    if exists:
        folder.mkdir()
        (folder / "mine").write_text("mine")
    before = contents(folder)
    copy = fetching.shutil.copyfile

    def full(source, target):
        if "second" in Path(target).name:
            Path(target).write_bytes(b"2")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        return copy(source, target)

    monkeypatch.setattr(fetching.shutil, "copyfile", full)
    assert "No space left on device" in refused(narrows, folder)
    assert folder.exists() == exists
    assert contents(folder) == before


def test_a_reader_sees_no_part_of_a_file(tmp_path):
    """The open file keeps its old content, because the new file replaces it in one step."""
    source, target = tmp_path / "source", tmp_path / "data" / "target"
    target.parent.mkdir()
    source.write_bytes(b"new")
    target.write_bytes(b"old content")
    with target.open("rb") as reader:
        fetching._place(source, target)
        assert reader.read() == b"old content"
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_the_list_refuses_a_file_as_data_folder(narrows, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for options in ([], ["--json"]):
        line = f"{file}: found a file, expected a folder\n"
        assert narrows("data", "--data", file, *options) == (2, "", line)


def archive(text):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr("a/b.csv", text)
    return packed.getvalue()


def test_columns_are_extracted_from_an_archive(tmp_path, mirror):
    content = archive("Time,Rate,Mode\nx,7,5G\ny,8,4G\n")
    expected = b"second,mode,rate\r\n0,5G,7\r\n1,4G,8\r\n"
    file = DataFile(
        path="traces/b.csv",
        size=len(expected),
        sha256=sha256(expected),
        url="https://example.org/all.zip",
        download_sha256=sha256(content),
        extract=Columns("a/b.csv", "second", {"mode": "Mode", "rate": "Rate"}),
    )
    (mirror / "all.zip").write_bytes(content)
    assert fetching.fetch(data_set(file), tmp_path / "data") == [tmp_path / "data" / "traces" / "b.csv"]
    assert (tmp_path / "data" / "traces" / "b.csv").read_bytes() == expected
    wrong = dataclasses.replace(file, sha256="0" * 64)
    with pytest.raises(fetching.NarrowsError, match=r"a/b\.csv has another SHA-256 than expected"):
        fetching.fetch(data_set(wrong), tmp_path / "other")
    assert not (tmp_path / "other").exists()


# --- no path of a developer's machine


def test_no_shipped_file_names_a_path_of_a_workspace():
    # The words are split, because otherwise this file itself would match.
    wanted = ("/" + "work/", ".." + "/shared", "shared" + "/data", "parents[" + "4]")
    listed = subprocess.run(
        ["git", "-C", REPOSITORY, "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    matches = []
    for name in filter(None, listed.stdout.split("\0")):
        path = REPOSITORY / name
        if path.is_symlink() or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        matches += [f"{name}: {part}" for part in wanted if part in text]
    assert matches == []
