"""The error of the vm backend."""

from narrows.errors import NarrowsError


class VmError(NarrowsError):
    """A missing prerequisite of the vm backend, or a guest that failed, in one line."""
