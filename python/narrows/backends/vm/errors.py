"""What the vm backend says when something is missing or fails."""

from narrows.errors import NarrowsError


class VmError(NarrowsError):
    """Something that the vm backend needs and that is not there, or a guest that failed: one line."""
