"""Reads and writes the objects below a URL. Every failure of the store becomes an error of one line.

The module accesses the store through fsspec. fsspec's packages for object stores repeat failed requests with
increasing pauses.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from narrows import extras
from narrows.errors import NarrowsError, OutputError, described, found, one_line

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
"""For each protocol, the extra of the package `narrows` that the protocol needs."""
_WHOLE = ("s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "memory")
"""Protocols of stores in which a write is atomic. With other protocols, files are renamed after the write."""
_ATTEMPTS = 8
"""Number of attempts of a request to S3, unless AWS_MAX_ATTEMPTS or AWS_RETRY_MODE is set."""
_CONNECT_SECONDS = 10
_AT_ONCE = 64
"""Number of objects that are read at the same time."""
_NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError")
_NO_BUCKET = "bucket does not exist"
"""Part of the message of S3 and of Google Cloud Storage about a missing bucket. The message is needed because
the type of the exception is the same for a missing bucket and a missing object."""
_NO_ANSWER = ("ConnectionError", "EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError")


def _options(protocol: str) -> dict[str, Any]:
    """Options of fsspec for a protocol."""
    if protocol in ("file", "local"):
        return {"auto_mkdir": True}
    if protocol not in _EXTRAS:
        return {}
    options: dict[str, Any] = {"use_listings_cache": False}  # other writers add objects
    if protocol in ("s3", "s3a"):
        config: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS}
        if not {"AWS_MAX_ATTEMPTS", "AWS_RETRY_MODE"} & os.environ.keys():
            config["retries"] = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
        options["config_kwargs"] = config
    return options


class Objects:
    """The objects below a URL. Names of objects are relative to the URL and may contain slashes.

    Raises:
        MissingExtraError: if the package for the protocol is not installed.
        OutputError: if fsspec does not support the protocol.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.protocol = url.partition(":")[0]
        if (extra := _EXTRAS.get(self.protocol)) is not None or importlib.util.find_spec("fsspec") is None:
            extras.require(extra or "s3", url)
        from fsspec.core import url_to_fs  # noqa: PLC0415 (optional)

        try:
            self._fs, root = url_to_fs(url, **_options(self.protocol))
        except ImportError as error:
            raise OutputError(one_line(f"{url}: {error}")) from None
        except ValueError:
            raise OutputError(
                f"{url}: found protocol {found(self.protocol)}, expected one of fsspec, e.g. s3, gs or file"
            ) from None
        except Exception as error:  # each package raises errors of its own
            raise OutputError(f"{url}: cannot be opened ({described(error)})") from None
        self.root = root.rstrip("/")
        if not self.root:
            example = "/folder" if self.protocol in ("file", "local") else "bucket/folder"
            raise OutputError(f"{url}: found no name, expected e.g. {self.protocol}://{example}")

    def path(self, name: str) -> str:
        """The path of an object in the form that fsspec and `arrow` use."""
        return f"{self.root}/{name}"

    @property
    def arrow(self) -> Any:
        """The store as a file system of Arrow."""
        from pyarrow.fs import FSSpecHandler, PyFileSystem  # noqa: PLC0415 (slow to import)

        return PyFileSystem(FSSpecHandler(self._fs))  # type: ignore[abstract]  # the stubs are wrong

    def write(self, name: str, data: bytes) -> None:
        """Write an object atomically: readers see either no object or the complete object.

        Raises:
            OutputError: if it cannot be written.
        """
        with self.one_line("written"):
            if self.protocol in _WHOLE:
                self._fs.pipe_file(self.path(name), data)
                return
            folder, _, last = self.path(name).rpartition("/")
            aside = f"{folder}/.{last}.{secrets.token_hex(4)}.part"
            self._fs.makedirs(folder, exist_ok=True)
            self._fs.pipe_file(aside, data)
            self._fs.mv(aside, self.path(name))

    def create(self, name: str, data: bytes) -> bool:
        """Write an object if it does not exist. Returns whether this call wrote it.

        If the store supports conditional writes, only one of several callers succeeds. If not, two callers
        can both succeed. Each caller must write different data. If the answer to a request is lost, the
        request is repeated and finds that the object exists. In this case, the call recognises its own object
        by the data.

        Raises:
            OutputError: if it cannot be written.
        """
        with self.one_line("written"):
            if self.protocol not in _WHOLE:
                if self._fs.exists(self.path(name)):
                    return False
                self.write(name, data)
                return True
            try:
                self._fs.pipe_file(self.path(name), data, mode="create")
            except (OSError, NotImplementedError) as error:
                if isinstance(error, FileNotFoundError | PermissionError):
                    raise
                if (there := self.read(name)) is not None:
                    return there == data
                if not isinstance(error, NotImplementedError) and error.errno != errno.ENOSYS:
                    raise
                self._fs.pipe_file(self.path(name), data)
        return True

    def read(self, name: str) -> bytes | None:
        """The content of an object (None: it does not exist).

        Raises:
            OutputError: if the store fails, or if its bucket does not exist.
        """
        with self.one_line("read"):
            try:
                return bytes(self._fs.cat_file(self.path(name)))
            except FileNotFoundError as error:
                if _NO_BUCKET in str(error):
                    raise
                return None

    def read_all(self, names: Sequence[str]) -> Iterator[bytes]:
        """The contents of several objects, in this order.

        Raises:
            OutputError: if an object cannot be read.
        """
        for first in range(0, len(names), _AT_ONCE):
            paths = [self.path(name) for name in names[first : first + _AT_ONCE]]
            with self.one_line("read"):
                contents = self._fs.cat(paths)
            yield from (bytes(contents[path]) for path in paths)

    def names(self, folder: str) -> list[str]:
        """The names of all objects below a folder, sorted (empty: the folder does not exist).

        Raises:
            OutputError: if the store fails.
        """
        with self.one_line("read"):
            try:
                # Do not use a cached listing, because it may lack objects of other writers.
                self._fs.invalidate_cache()
                paths = self._fs.find(self.path(folder))
            except FileNotFoundError as error:
                if _NO_BUCKET in str(error):
                    raise
                return []
        prefix = len(self.root) + 1
        return sorted(path[prefix:] for path in paths if not path.rpartition("/")[2].startswith("."))

    def exists(self, name: str) -> bool:
        """Whether there is an object of this name.

        Raises:
            OutputError: if the store fails.
        """
        with self.one_line("read"):
            return bool(self._fs.exists(self.path(name)))

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects. A missing object is not an error.

        Raises:
            OutputError: if the store fails.
        """
        with self.one_line("written"):
            for name in names:
                with suppress(FileNotFoundError):
                    self._fs.rm_file(self.path(name))

    @contextmanager
    def one_line(self, done: str) -> Iterator[None]:
        """Turn the errors of fsspec's packages into errors of one line.

        Args:
            done: `read` or `written`.
        """
        try:
            yield
        except (NarrowsError, TypeError, AttributeError):  # TypeError and AttributeError are bugs in Narrows
            raise
        except Exception as error:  # each package raises errors of its own
            raise OutputError(f"{self.url}: {self._reason(error, done)}") from None

    def _reason(self, error: Exception, done: str) -> str:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        text = one_line((str(error).strip().splitlines() or [type(error).__name__])[0])
        if kinds & set(_NO_CREDENTIALS):
            return (
                "found no credentials for the store, expected them in the environment or in the "
                "configuration files of the store's tools"
            )
        if kinds & set(_NO_ANSWER) or isinstance(error, TimeoutError):
            return f"found no answer of the store ({text}), expected one; continue a sweep later with --reuse"
        if isinstance(error, FileNotFoundError):
            if _NO_BUCKET in text:
                bucket = self.root.partition("/")[0]
                return f"found no bucket {found(bucket)}, expected one that exists"
            if done == "written":
                return f"cannot be written ({text})"
            return "found no such object, expected a complete dataset"
        if isinstance(error, PermissionError):
            return f"cannot be {done} (permission denied: {text})"
        if isinstance(error, OSError) and error.errno and error.strerror:
            text = os.strerror(error.errno)
        return f"cannot be {done} ({text})"


def parquet(table: pa.Table) -> bytes:
    """A table as the content of a Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import)

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())
