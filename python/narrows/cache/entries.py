"""A store of the outputs of runs. Several users and sweeps may share one store.

A key is a hash of everything that determines an output.

FOLDER/CACHEDIR.TAG       marks the folder
FOLDER/<xx>/<rest>.run    an entry; the key is <xx><rest>

Entries are written atomically. Each entry has a checksum, because a machine that loses power may leave a file
with wrong content. An entry that is not valid is treated as if it did not exist.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from narrows.errors import OutputError

_TAG = "CACHEDIR.TAG"
_MARK = "Signature: 8a477f597d28d172789f06886806bc55\n# Runs that narrows keeps (narrows cache).\n"
"""Content of the file CACHEDIR.TAG. Backup programs recognise a cache by its first line
(https://bford.info/cachedir)."""
_MAGIC = b"narrows1"
_DIGEST_BYTES = 32
_SUFFIX = ".run"
_ABANDONED_SECONDS = 3600.0
"""A partial file that is older than this time is removed, because its writer must have been killed."""


_CODEC = pa.Codec("zstd", 1)
_MOST_BYTES = 1 << 32
_INVALID = (
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    MemoryError,
    SystemError,
    RecursionError,
)
"""Errors that can occur when an invalid entry is read."""
_NAME = re.compile(r"[0-9a-f]{62}\.run")
_PARTIAL = re.compile(r"\.[0-9a-f]{62}\.run-[0-9a-f]{8}")
_TEXT = "text"
"""The kind of a column of strings. The kind of a column of numbers is numpy's type code."""


@dataclass
class _Head:
    """The parts of an entry."""

    run: dict[str, Any]
    tables: dict[str, list[tuple[str, str, int]]]
    """Name, kind and number of bytes of each column, by table."""
    plain_bytes: int
    """Size of all columns before the compression."""


@dataclass(frozen=True)
class Entry:
    """A run in a cache."""

    path: Path
    size_bytes: int
    used_s: float
    """Time of the last use, as `time.time`."""


class Cache:
    """The outputs of runs by key.

    Args:
        folder: the folder, which is created if necessary.

    Raises:
        OutputError: if the folder cannot be created, or has other files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        tag = self.folder / _TAG
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: found a file, expected a folder for a cache")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not is_cache(self.folder):
                # Another process may be making the same cache.
                others = [entry for entry in self.folder.iterdir() if not entry.name.startswith(_TAG)]
                if others or (tag.exists() and not is_cache(self.folder)):
                    raise OutputError(f"{folder}: found other files, expected an empty folder or a cache")
                partial = tag.with_name(f"{_TAG}-{secrets.token_hex(4)}")
                partial.write_text(_MARK, encoding="utf-8")
                partial.replace(tag)
        except OSError as error:
            raise OutputError(
                f"{folder}: cannot be used as a cache ({os.strerror(error.errno or 0)})"
            ) from None

    def get(self, key: str) -> dict[str, Any] | None:
        """The output with this key, or None. The call also updates the time of the entry's last use."""
        path = self._path(key)
        try:
            output = _decoded(key, path.read_bytes())
        except _INVALID:
            return None
        with contextlib.suppress(OSError):  # a reader without write permission cannot set the time
            os.utime(path)
        return output

    def put(self, key: str, output: Mapping[str, Any]) -> None:
        """Keep an output.

        Raises:
            OSError: if it cannot be written.
        """
        path = self._path(key)
        partial = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        path.parent.mkdir(exist_ok=True)
        try:
            partial.write_bytes(_encoded(key, output))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def entries(self) -> Iterator[Entry]:
        """All entries, in no particular order."""
        for path in self._files():
            if _NAME.fullmatch(path.name):
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    known = path.stat()
                    yield Entry(path, known.st_size, known.st_mtime)

    def _files(self) -> Iterator[Path]:
        """The files in the subfolders that hold entries.

        A subfolder that is a link to another folder is skipped.
        """
        for folder in self.folder.glob("[0-9a-f][0-9a-f]"):
            if folder.is_dir() and not folder.is_symlink():
                yield from folder.iterdir()

    def prune(self, most_bytes: int | None = None, unused_s: float | None = None) -> list[Entry]:
        """Remove entries, and partial files of killed writers. Returns the removed entries.

        Args:
            most_bytes: the most recently used entries stay, up to this total size (None: no limit).
            unused_s: entries that were not used for this time are removed (negative infinity: all).

        Raises:
            OutputError: if an entry cannot be removed.
        """
        now = time.time()
        removed, kept_bytes = [], 0
        try:
            for left in self._files():
                if _PARTIAL.fullmatch(left.name):
                    with contextlib.suppress(FileNotFoundError):  # meanwhile complete and renamed
                        if now - left.stat().st_mtime > _ABANDONED_SECONDS:
                            left.unlink()
            for entry in sorted(self.entries(), key=lambda entry: entry.used_s, reverse=True):
                kept_bytes += entry.size_bytes
                is_old = unused_s is not None and now - entry.used_s > unused_s
                if is_old or (most_bytes is not None and kept_bytes > most_bytes):
                    entry.path.unlink(missing_ok=True)
                    removed.append(entry)
        except OSError as error:
            raise OutputError(f"{error.filename}: cannot be removed ({error.strerror})") from None
        return removed

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}{_SUFFIX}"


def is_cache(folder: Path) -> bool:
    """Whether a folder is a cache of Narrows.

    In the caches of other programs, CACHEDIR.TAG has another text.
    """
    try:
        return (folder / _TAG).read_text(encoding="utf-8") == _MARK
    except (OSError, ValueError):
        return False


def _checksum(key: str, body: bytes | memoryview) -> bytes:
    """The checksum of an entry.

    The key is part of the checksum, so an entry that is stored under another key is not valid.
    """
    checksum = hashlib.sha256(key.encode())
    checksum.update(body)
    return checksum.digest()


def _encoded(key: str, output: Mapping[str, Any]) -> bytes:
    """An output as bytes: magic, checksum of the rest, length of the head, head, compressed columns."""
    head = _Head(dict(output["run"]), {}, 0)
    parts: list[bytes] = []
    for name, columns in output.items():
        if name == "run":
            continue
        head.tables[name] = []
        for column, values in columns.items():
            is_text = isinstance(values, list)
            parts.append(json.dumps(values).encode() if is_text else values.tobytes())
            head.tables[name].append((column, _TEXT if is_text else values.dtype.str, len(parts[-1])))
    plain = b"".join(parts)
    if len(plain) > _MOST_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    head.plain_bytes = len(plain)
    text = json.dumps(dataclasses.asdict(head)).encode()
    body = b"".join([len(text).to_bytes(4, "big"), text, _CODEC.compress(plain, asbytes=True)])
    return _MAGIC + _checksum(key, body) + body


def _decoded(key: str, content: bytes) -> dict[str, Any]:
    """Decode the result of `_encoded`.

    Raises:
        `_INVALID`: if the content is not valid. The content can be invalid although the checksum is right,
            because another user or another version may have written the entry.
    """
    start = len(_MAGIC) + _DIGEST_BYTES
    body = memoryview(content)[start:]
    if not content.startswith(_MAGIC) or _checksum(key, body) != content[len(_MAGIC) : start]:
        raise ValueError
    at = 4 + int.from_bytes(body[:4], "big")
    head = _Head(**json.loads(bytes(body[4:at])))
    if not isinstance(head.run, dict) or not 0 <= head.plain_bytes <= _MOST_BYTES:
        raise ValueError
    plain = memoryview(_CODEC.decompress(pa.py_buffer(body[at:]), head.plain_bytes, asbytes=True))
    output: dict[str, Any] = {}
    begin = 0
    for name, columns in head.tables.items():
        output[name] = {}
        for column, kind, length in columns:
            part = plain[begin : begin + length]
            output[name][column] = (
                json.loads(bytes(part)) if kind == _TEXT else np.frombuffer(part, kind).copy()
            )
            begin += length
    return output | {"run": head.run}
