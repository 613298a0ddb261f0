"""Writes an initramfs, which contains files of this machine in cpio's `newc` format.

See Documentation/driver-api/early-userspace/buffer-format.rst in Linux. Modification times are kept. A
compiled Python file contains the modification time of its source file, and Python compares this time with the
source file's actual modification time.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

_MAGIC = "070701"


class Archive:
    """Writes files, folders and links. Each name is written once. A folder is written before its contents."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._names: set[str] = {""}
        self._inode = 0

    def folder(self, name: str) -> None:
        """Add a folder and its parents."""
        name = name.strip("/")
        if name in self._names:
            return
        self.folder(str(Path(name).parent) if "/" in name else "")
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Add a file with this content."""
        self._below(name, stat.S_IFREG | mode, data)

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        self._below(name, stat.S_IFLNK | 0o777, target.encode())

    def device(self, name: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._below(name, stat.S_IFCHR | 0o600, b"", device=(major, minor))

    def copy(self, path: Path) -> None:
        """Add a file of this machine under the same path, and the symbolic links on that path.

        Raises:
            OSError: if the file cannot be read.
        """
        place = Path("/")
        for part in path.parts[1:]:
            place /= part
            if str(place).strip("/") in self._names and not place.is_symlink():
                continue
            if place.is_symlink():
                target = place.readlink()
                self.link(str(place), str(target))
                rest = path.relative_to(place)
                # Continue with the target of the link.
                self.copy(Path(os.path.normpath(place.parent / target)) / rest)
                return
        if path.is_dir():
            self.folder(str(path))
        else:
            found = path.stat()
            self._below(str(path), found.st_mode, path.read_bytes(), time=int(found.st_mtime))

    def close(self) -> None:
        """Write the end of the archive."""
        self._names.discard("TRAILER!!!")
        self._entry("TRAILER!!!", 0, b"")

    def _below(
        self, name: str, mode: int, data: bytes, time: int = 0, device: tuple[int, int] = (0, 0)
    ) -> None:
        name = name.strip("/")
        if name in self._names:
            return
        if "/" in name:
            self.folder(name.rpartition("/")[0])
        self._entry(name, mode, data, time, device)

    def _entry(
        self, name: str, mode: int, data: bytes, time: int = 0, device: tuple[int, int] = (0, 0)
    ) -> None:
        self._names.add(name)
        self._inode += 1
        links = 2 if stat.S_ISDIR(mode) else 1
        raw = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, links, time, len(data), 0, 0, *device, len(raw), 0)
        head = _MAGIC + "".join(f"{field:08x}" for field in fields)
        self._padded(head.encode() + raw)
        self._padded(data)

    def _padded(self, data: bytes) -> None:
        self._out.write(data)
        self._out.write(b"\0" * (-len(data) % 4))
