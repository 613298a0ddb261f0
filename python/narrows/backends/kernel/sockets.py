"""Sockets in another network namespace, and sockets of another process."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from pathlib import Path

from narrows.backends.kernel.shell import KernelError
from narrows.errors import one_line

_CLONE_NEWNET = 0x40000000
_PIDFD_GETFD = 438
"""Number of the system call pidfd_getfd (asm-generic/unistd.h), since Linux 5.6."""


def socket_in(namespace: str, family: int, kind: int, protocol: int = 0) -> socket.socket:
    """Create a socket in a namespace, which is given by the path of its file.

    A socket stays in the namespace of its creation.

    Raises:
        KernelError: if there is no such namespace, or if it cannot be entered.
    """
    made: list[socket.socket] = []
    failed: list[OSError] = []

    def make() -> None:
        # setns(2) changes the namespace of the calling thread only. This thread therefore does nothing except
        # create the socket.
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(namespace).open("rb") as file:
                if libc.setns(file.fileno(), _CLONE_NEWNET):
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            made.append(socket.socket(family, kind, protocol))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=make, name="narrows-socket")
    thread.start()
    thread.join()
    if failed:
        raise KernelError(one_line(f"{namespace}: {failed[0].strerror}"))
    return made[0]


def sockets_of(pid: int) -> list[socket.socket]:
    """Duplicates of a process's sockets. Options set on a duplicate apply to the original.

    Raises:
        KernelError: if the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    found = []
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if entry.readlink().name.startswith("socket:"):
                number = libc.syscall(_PIDFD_GETFD, process, int(entry.name), 0)
                if number < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                found.append(socket.socket(fileno=number))
    except OSError as error:
        for made in found:
            made.close()
        raise KernelError(one_line(f"sockets of process {pid}: {error.strerror}")) from None
    finally:
        os.close(process)
    return found
