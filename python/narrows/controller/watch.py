"""The thread that samples the domain once a second, for the history of the ports and for the alerts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from narrows.controller import sample, view
from narrows.controller.alertmanager import NAMES, Sender
from narrows.controller.alerts import Alert, Alerts, Rules
from narrows.controller.history import STEP_S, History
from narrows.controller.messages import Note
from narrows.controller.runtime import Runtime

LOG = logging.getLogger("narrows.controller")
INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Recording:
    """Figures about the recording itself."""

    ports: int
    left_out: int


class Watch:
    """Samples the domain. The domain's lock is held only while references to the flows are copied.

    Args:
        runtime: the source of all data.
        now_ns: monotonic time of the start (None: now).
        rules: thresholds of the alerts.
        senders: senders that get the alerts that begin or end.
    """

    def __init__(
        self,
        runtime: Runtime,
        now_ns: int | None = None,
        rules: Rules | None = None,
        senders: Sequence[Sender] = (),
    ) -> None:
        self._runtime, self._senders = runtime, senders
        self._lock = threading.Lock()
        start_ns = time.monotonic_ns() if now_ns is None else now_ns
        self._history = History(start_ns)
        self._alerts = Alerts(start_ns, rules or Rules())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Starts the thread, and the threads of the senders."""
        for sender in self._senders:
            sender.start()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        for sender in self._senders:
            sender.stop()
        self._thread.join(timeout=5)

    def look(self, now_ns: int) -> None:
        """Takes one sample.

        Args:
            now_ns: monotonic time.
        """
        taken = self._runtime.look(lambda domain, _: sample.take(domain, now_ns))
        with self._lock:
            self._history.add(now_ns, taken)
            if not self._runtime.is_active():
                # This controller is a standby. Agents and switches are connected to the other controller,
                # which sends the alerts.
                self._alerts = Alerts(now_ns, self._alerts.rules)
                return
            changes = self._alerts.check(now_ns, time.time(), taken)
        if changes:
            for sender in self._senders:
                sender.put(changes)
        for alert in changes:
            self._runtime.note(_note(alert))

    def series(self, port: str, after: int = -1) -> view.Series | None:
        """The last hour of a port. Only intervals with a number above `after` are returned."""
        now_ns, unix_s = time.monotonic_ns(), time.time()
        with self._lock:
            found = self._history.read(port, after)
            last, end_s = self._history.number - 1, self._history.end_s(now_ns, unix_s)
        if found is None:
            return None
        first, series = found
        return view.Series(port=port, step_s=STEP_S, first=first, last=last, end_s=end_s, **series)

    def alerts(self) -> view.AlertState:
        """Alerts that have begun and not ended, and the state of their delivery."""
        with self._lock:
            rules, active, left_out = self._alerts.rules, self._alerts.active, self._alerts.left_out
        return view.AlertState(
            configured=bool(rules),
            left_out=left_out,
            active=[_shown(alert) for alert in active],
            receivers=[
                view.Receiver(url=sender.url, error=sender.error, delivered=sender.delivered_s)
                for sender in self._senders
            ],
        )

    def recording(self) -> Recording:
        """How many ports are recorded, and how many are left out because there are too many."""
        with self._lock:
            return Recording(len(self._history), self._history.left_out)

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            try:
                self.look(time.monotonic_ns())
            except Exception:
                # If a bug makes a sample fail, the recording must continue.
                LOG.exception("cannot take a sample")


def _shown(alert: Alert) -> view.Alert:
    key = alert.key
    return view.Alert(
        name=NAMES[key.rule],
        severity=alert.severity,
        agent=key.agent,
        interface=key.interface or None,
        since=alert.since_s,
        text=alert.text,
    )


def _note(alert: Alert) -> Note:
    key, has_ended = alert.key, alert.ends_s is not None
    what = f"{key.interface} of {key.agent}" if key.interface else key.agent
    text = f"{NAMES[key.rule]} of {what} has ended" if has_ended else f"{NAMES[key.rule]}: {alert.text}"
    data = {"rule": key.rule, "agent": key.agent, "interface": key.interface}
    kind = "alert-end" if has_ended else "alert-critical" if alert.severity == "critical" else "alert"
    return Note(kind, text, data)
