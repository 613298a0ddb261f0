"""Reports the state of the service to systemd."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Sends a state such as `READY=1` to systemd's socket, if systemd has set one (sd_notify(3))."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    # The name of an abstract socket begins with a zero byte, which systemd writes as `@`.
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state.encode(), address)
