"""Sends alerts to an Alertmanager (`POST /api/v2/alerts`), as its documentation for clients requires.

Alerts that have not ended are sent again each minute, with an end time in the future. If the controller
dies, these end times pass, so the Alertmanager ends the alerts by itself. A failed request is repeated with
increasing pauses. Each Alertmanager has its own thread, so no other part of the controller waits for the
network.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from narrows.controller.alerts import Alert, Key
from narrows.controller.limits import Warnings
from narrows.controller.sample import id_of
from narrows.errors import one_line
from narrows.units import NANOS_PER_SEC as SECOND

LOG = logging.getLogger("narrows.controller.alerts")
REPEAT_NS = 60 * SECOND
VALID_S = 240.0
"""An Alertmanager ends an alert that was not sent again for this time: four times `REPEAT_NS`, as in
Prometheus."""
PAUSE_MIN_NS, PAUSE_MAX_NS = SECOND, 60 * SECOND
KEEP_NS = 900 * SECOND
"""A failed request about the end of an alert is repeated for at most this time. After this time, the
Alertmanager has ended the alert by itself."""
ENDED_MAX = 1000
TIMEOUT_S = 10.0
SAID_MAX = 200
"""Maximum number of bytes of an answer that are read or shown."""
NAMES = {"queue": "NarrowsQueueDelay", "agent": "NarrowsAgentSilent", "flow": "NarrowsFlowSlow"}


class Outbox:
    """The alerts that an Alertmanager must receive, and the times of the requests that carry them."""

    def __init__(self) -> None:
        self._firing: dict[Key, Alert] = {}
        self._ended: dict[Key, tuple[int, Alert]] = {}
        self._is_new = False
        self._at_ns = 0
        self._pause_ns = 0

    def put(self, now_ns: int, changes: Iterable[Alert]) -> None:
        """Adds alerts that have begun or ended."""
        for alert in changes:
            self._is_new = True
            if alert.ends_s is None:
                self._ended.pop(alert.key, None)
                self._firing[alert.key] = alert
            else:
                self._firing.pop(alert.key, None)
                self._ended[alert.key] = (now_ns, alert)
                if len(self._ended) > ENDED_MAX:
                    del self._ended[next(iter(self._ended))]

    def next_ns(self) -> int | None:
        """Time of the next request in ns (0: now, None: there is nothing to send)."""
        if not self._firing and not self._ended:
            return None
        # After a failed request, even new alerts wait until the pause is over.
        return 0 if self._is_new and not self._pause_ns else self._at_ns

    def take(self, now_ns: int) -> list[Alert]:
        """The alerts that a request at this time must send."""
        self._ended = {key: old for key, old in self._ended.items() if now_ns - old[0] < KEEP_NS}
        self._is_new = False
        return [*self._firing.values(), *(alert for _, alert in self._ended.values())]

    def finish(self, now_ns: int, sent: Iterable[Alert], is_delivered: bool) -> None:
        """Handles the result of a request."""
        if not is_delivered:
            self._pause_ns = min(max(2 * self._pause_ns, PAUSE_MIN_NS), PAUSE_MAX_NS)
            self._at_ns = now_ns + self._pause_ns
            return
        self._pause_ns, self._at_ns = 0, now_ns + REPEAT_NS
        for alert in sent:
            own = self._ended.get(alert.key)
            if own is not None and own[1] is alert:
                del self._ended[alert.key]


def body(alerts: Iterable[Alert], controller: str, page: str | None, unix_s: float) -> bytes:
    """The body of a request."""
    return json.dumps([_posted(alert, controller, page, unix_s) for alert in alerts]).encode()


def _posted(alert: Alert, controller: str, page: str | None, unix_s: float) -> dict[str, Any]:
    key = alert.key
    labels = {
        "alertname": NAMES[key.rule],
        "severity": alert.severity,
        "controller": controller,
        "agent": key.agent,
    }
    if key.interface:
        labels["interface"] = key.interface
    posted: dict[str, Any] = {
        "labels": labels,
        "annotations": {"summary": alert.text},
        "startsAt": _time(alert.since_s),
        "endsAt": _time(unix_s + VALID_S if alert.ends_s is None else alert.ends_s),
    }
    if page is not None:
        anchor = f"#port={quote(id_of(key.agent, key.interface), safe='')}" if key.interface else ""
        posted["generatorURL"] = page.rstrip("/") + "/" + anchor
    return posted


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")


def post(url: str, authorization: str | None, data: bytes) -> str | None:
    """Sends one request. Redirects are not followed, because they could send the secret to another server.

    Returns:
        None if the Alertmanager accepted the request, else the reason why it failed.
    """
    parts = urlsplit(url)
    # Always pass a port: without a port, `http.client` would take the last part of an IPv6 address for the
    # port.
    host, is_https = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_https else 80)
    connection: http.client.HTTPConnection
    if is_https:
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    headers = {"Content-Type": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization
    try:
        connection.request("POST", f"{parts.path.rstrip('/')}/api/v2/alerts", data, headers)
        answer = connection.getresponse()
        said = answer.read(SAID_MAX).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        # If the server does not speak HTTP, the text of the error can contain bytes that the server sent.
        return one_line(str(error)[:SAID_MAX]).strip() or type(error).__name__
    finally:
        connection.close()
    if 200 <= answer.status < 300:
        return None
    return f"found status {answer.status}: {said!r}"


class Sender:
    """The thread of one Alertmanager.

    Args:
        url: its address.
        controller: name of the controller, which is a label of each alert.
        authorization: the value of the header `Authorization` (None: no such header).
        page: address of the controller's page. Each alert contains this address (None: no address).
    """

    def __init__(self, url: str, controller: str, authorization: str | None, page: str | None) -> None:
        self.url, self._controller, self._authorization, self._page = url, controller, authorization, page
        self._outbox = Outbox()
        self._changed = threading.Condition()
        self._is_over = False
        self._warnings = Warnings(LOG)
        self.error: str | None = None
        """Why the last request failed."""
        self.delivered_s: float | None = None
        """Unix time of the last accepted request."""
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Tells the thread to end.

        This function does not wait for the end, because the thread may be waiting for the network.
        """
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def put(self, changes: list[Alert]) -> None:
        """Adds alerts that have begun or ended. Never waits for the network."""
        with self._changed:
            self._outbox.put(time.monotonic_ns(), changes)
            self._changed.notify()

    def _run(self) -> None:
        while (sent := self._wait()) is not None:
            data = body(sent, self._controller, self._page, time.time())
            try:
                error = post(self.url, self._authorization, data)
            except Exception as unforeseen:
                # A bug in this code must not end the delivery of alerts.
                LOG.exception("cannot send alerts")
                error = type(unforeseen).__name__
            if error is not None:
                self._warnings.warn("cannot send alerts to %s: %s", self.url, error)
            elif self.error is not None:
                LOG.info("alerts are sent to %s again", self.url)
            with self._changed:
                self.error = error
                if error is None:
                    self.delivered_s = time.time()
                self._outbox.finish(time.monotonic_ns(), sent, error is None)

    def _wait(self) -> list[Alert] | None:
        """Waits until the next request is due.

        Returns the alerts of this request, or None if the thread must end.
        """
        with self._changed:
            while not self._is_over:
                at_ns, now_ns = self._outbox.next_ns(), time.monotonic_ns()
                if at_ns is not None and at_ns <= now_ns:
                    if sent := self._outbox.take(now_ns):
                        return sent
                    continue
                self._changed.wait(None if at_ns is None else (at_ns - now_ns) / 1e9)
        return None
