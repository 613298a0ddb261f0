"""Downloads a data set. Each file is verified before it appears in the data folder."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from narrows import extras
from narrows.data.catalogue import DATA_SETS, Columns, DataFile, DataSet
from narrows.data.folder import State, check_folder, digest, state
from narrows.errors import NarrowsError, choice, one_line

MIRROR = "NARROWS_DATA_MIRROR"
"""Environment variable with the address of a mirror. In the mirror, the name of each download is the last
part of its URL."""
_TIMEOUT_S = 30


def find(name: str) -> DataSet:
    """The data set of that name.

    Raises:
        NarrowsError: if the catalogue does not have it.
    """
    for known in DATA_SETS:
        if known.name == name:
            return known
    raise NarrowsError(f"data: {choice(name, [known.name for known in DATA_SETS])}")


def fetch(data: DataSet, folder: Path, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Download the missing files of a data set.

    First, the folder is checked. Then all files are downloaded and verified. Only then are they moved into
    the folder.

    Args:
        data: the data set.
        folder: the data folder, which is created if it does not exist.
        say: called with a line about each download.

    Returns:
        The files that were written.

    Raises:
        NarrowsError: if the data set has no download, the folder cannot hold its files, a file in the folder
            has another checksum, or a download fails or has another checksum. In all these cases the folder
            is unchanged.
        OSError: if a file cannot be written. In this case, too, the folder is unchanged.
    """
    missing = check(data, folder)
    with tempfile.TemporaryDirectory(prefix="narrows-data-") as temporary:
        ready = [(_obtain(file, Path(temporary), say), folder / file.path) for file in missing]
        _place_all(ready)
    return [target for _, target in ready]


def check(data: DataSet, folder: Path) -> list[DataFile]:
    """Check, before any download, that a data set can be fetched into the folder; returns the missing files.

    Raises:
        NarrowsError: if the data set has no download, the folder cannot hold its files, or a file in the
            folder has another checksum.
    """
    if not data.is_fetchable:
        raise NarrowsError(f"data: {data.name} has no download. {data.by_hand}")
    states = {file.path: state(file, folder) for file in data.files}
    for path, found in states.items():
        if found is State.DIFFERENT:
            raise NarrowsError(
                f"{folder / path}: found another SHA-256 than expected; remove the file, then fetch it"
            )
    missing = [file for file in data.files if states[file.path] is State.MISSING]
    for file in missing:
        _check_target(folder / file.path)
    return missing


def _check_target(target: Path) -> None:
    """Check that a missing file can be written at this path."""
    check_folder(target.parent)
    if target.is_dir():
        raise NarrowsError(f"{target}: found a folder, expected a file or nothing")
    present = next(path for path in target.parents if path.is_dir())
    if not os.access(present, os.W_OK | os.X_OK):
        raise NarrowsError(f"{present}: found a folder that is not writable, expected a writable one")


def address(file: DataFile) -> str:
    """The URL of a download, on the mirror if one is set."""
    mirror = os.environ.get(MIRROR)
    return f"{mirror.rstrip('/')}/{file.url.rsplit('/', 1)[-1]}" if mirror else file.url


def _obtain(file: DataFile, temporary: Path, say: Callable[[str], None]) -> Path:
    """Download a file into the temporary folder, verify it, and return its path."""
    url = address(file)
    say(f"downloading {url}")
    download = _download(url, file.download_sha256 or file.sha256, temporary)
    if file.extract is None:
        return download
    extracted = temporary / Path(file.path).name
    extracted.write_bytes(extract(download, file.extract))
    if digest(extracted) != file.sha256:
        raise NarrowsError(f"data: {url}: {file.extract.member} has another SHA-256 than expected")
    return extracted


def _download(url: str, sha256: str, folder: Path) -> Path:
    extras.require("data", "data")
    import pooch  # noqa: PLC0415 (an optional dependency)
    import requests  # noqa: PLC0415 (pooch requires it)

    pooch.get_logger().setLevel("WARNING")
    try:
        path = pooch.retrieve(
            url,
            known_hash=f"sha256:{sha256}",
            fname=url.rsplit("/", 1)[-1],
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT_S),
        )
    except requests.HTTPError as error:
        reason = f"HTTP status {error.response.status_code if error.response is not None else 'unknown'}"
    except requests.Timeout:
        reason = f"no answer within {_TIMEOUT_S} s"
    except requests.ConnectionError:
        reason = "no connection to the server"
    except (requests.RequestException, ValueError) as error:
        # A ValueError means that pooch found another checksum. Its first sentence names both checksums.
        reason = str(error).partition(". ")[0]
    else:
        return Path(path)
    raise NarrowsError(f"data: cannot download {url}: {one_line(reason)}; nothing was written")


def extract(archive: Path, wanted: Columns) -> bytes:
    """Some columns of a CSV file in a ZIP archive, as a CSV file with a column of row numbers."""
    with zipfile.ZipFile(archive) as opened:
        rows = csv.DictReader(io.StringIO(opened.read(wanted.member).decode("utf-8")))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([wanted.row, *wanted.columns])
    for number, row in enumerate(rows):
        writer.writerow([number, *(row[column] for column in wanted.columns.values())])
    return text.getvalue().encode("utf-8")


def _place_all(files: list[tuple[Path, Path]]) -> None:
    """Move files into the data folder.

    If a file cannot be moved, the files that were already moved are removed again.
    """
    created: list[Path] = []
    try:
        for source, target in files:
            created += reversed([path for path in target.parents if not path.exists()])
            _place(source, target)
            created.append(target)
    except BaseException:
        for path in reversed(created):
            # A folder may not have been created yet, or may hold files of another process.
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def _place(source: Path, target: Path) -> None:
    """Move a file into the data folder. Readers see either no file or the whole file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        shutil.copyfile(source, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
