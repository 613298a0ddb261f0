"""Calls the system's tools and reports their failures."""

from __future__ import annotations

import subprocess

from narrows.backends.kernel import namespaces
from narrows.errors import NarrowsError, one_line


class KernelError(NarrowsError):
    """The kernel backend lacks a prerequisite, or the kernel refused a request. The message is one line."""


def inside(namespace: str, command: list[str], lines: list[str]) -> str:
    """Run a command in a namespace.

    The function uses nsenter, because `ip netns exec` would also mount another /sys without bpffs and
    cgroups.
    """
    return call(["nsenter", f"--net={namespaces.path(namespace)}", *command], lines)


def call(command: list[str], lines: list[str]) -> str:
    """Run a command with these lines as its input, and return its output. If there are no lines, do nothing.

    Raises:
        KernelError: if the command fails. The text is its first error message.
    """
    return run(command, "\n".join(lines) + "\n") if lines else ""


def run(command: list[str], text: str = "") -> str:
    """Run a command with this text as its input, and return its output.

    Raises:
        KernelError: if the command fails. The text is its first error message.
    """
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,  # Ctrl-C must not reach the command, which has to finish
        )
    except FileNotFoundError:
        raise KernelError(
            f"found no {command[0]}, which the kernel backend needs; run `narrows doctor`"
        ) from None
    if done.returncode:
        complaint = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise KernelError(one_line(f"{' '.join(command)}: {complaint}"))
    return done.stdout
