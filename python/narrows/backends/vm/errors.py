"""The error of the vm backend."""

from narrows.errors import NarrowsError


class VmError(NarrowsError):
    """The vm backend lacks a prerequisite, or a guest failed. The message is one line."""
