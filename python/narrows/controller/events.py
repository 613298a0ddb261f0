"""Makes the events of the page and of the log. Changes that alternate quickly are merged into one event.

The first changes of a subject, such as a port, appear immediately. Further changes are counted. All counted
changes appear as one event when the subject has not changed for `HOLD_NS`, or after `SUMMARY_NS` if the
subject continues to change.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from narrows.controller import view
from narrows.controller.messages import Note
from narrows.controller.view import Severity
from narrows.units import NANOS_PER_SEC as SECOND

HOLD_NS = 60 * SECOND
SUMMARY_NS = 300 * SECOND
"""Longest time for which changes are merged. With `HOLD_NS`, a flapping port causes at most 180 events per
hour."""
EVENTS_KEPT = 1000
_AT_ONCE = {"host": 8, "agent": 4, "switch": 4}
"""How many changes of a subject appear immediately, by kind of subject. A restart of an agent or of a switch
causes four changes or fewer. For a kind that is not listed, two changes appear immediately: enough for the
start and the end of congestion."""
_SUBJECTS: dict[str, tuple[str, ...]] = {
    "congestion": ("agent", "port"),
    "clear": ("agent", "port"),
    "port": ("switch", "port"),
    "link": ("a", "b"),
    "switch": ("switch",),
    "agent": ("agent",),
    "host": ("switch", "port"),
    "alert": ("rule", "agent", "interface"),
}
"""The keys of the data that identify an event's subject, by the first word of the event's kind."""
_ERRORS = {"switch-down", "link-down", "agent-down", "alert-critical"}
_WARNINGS = {"congestion", "port-down", "host-moved", "agent-refused", "alert"}


def severity(kind: str) -> Severity:
    """The severity of an event: `error` if a part of the network is not controlled or not connected."""
    return "error" if kind in _ERRORS else "warning" if kind in _WARNINGS else "info"


_ORDER: tuple[Severity, ...] = ("info", "warning", "error")


def _subject(note: Note) -> tuple[str, ...]:
    first = note.kind.partition("-")[0]
    group = "congestion" if first == "clear" else first
    return (group, *(str(note.data.get(name)) for name in _SUBJECTS.get(first, ())))


@dataclass(slots=True)
class _Episode:
    """A series of changes of a subject. The pauses between the changes are shorter than `HOLD_NS`."""

    last_ns: int
    shown: int = 0
    merged: int = 0
    since_ns: int = 0
    note: Note | None = None
    worst: Severity = "info"


class Events:
    """Numbers events, and keeps the last thousand events."""

    def __init__(self) -> None:
        self.kept: deque[view.Event] = deque(maxlen=EVENTS_KEPT)
        self._number = 0
        self._episodes: dict[tuple[str, ...], _Episode] = {}

    def add(self, now_ns: int, unix_s: float, note: Note) -> list[view.Event]:
        """Handles a change, and returns the new events.

        Args:
            now_ns: monotonic time.
            unix_s: the same moment as Unix time.
            note: the change.
        """
        subject = _subject(note)
        new = self.tick(now_ns, unix_s)
        episode = self._episodes.setdefault(subject, _Episode(now_ns))
        episode.last_ns = now_ns
        if episode.shown < _AT_ONCE.get(subject[0], 2):
            episode.shown += 1
            return [*new, self._keep(unix_s, note, severity(note.kind), 1, 0.0)]
        if episode.merged == 0:
            episode.since_ns, episode.worst = now_ns, "info"
        episode.merged += 1
        episode.note = note
        episode.worst = max(episode.worst, severity(note.kind), key=_ORDER.index)
        return new

    def tick(self, now_ns: int, unix_s: float) -> list[view.Event]:
        """Returns merged events of subjects that stopped changing, or have been changing for `SUMMARY_NS`."""
        new = []
        for subject, episode in list(self._episodes.items()):
            is_over = now_ns - episode.last_ns >= HOLD_NS
            if episode.merged and (is_over or now_ns - episode.since_ns >= SUMMARY_NS):
                new.append(self._summary(unix_s, episode))
            if is_over:
                del self._episodes[subject]
        return new

    def next_timer_ns(self) -> int | None:
        """Time of the next call of `tick`."""
        times = [
            min(episode.last_ns + HOLD_NS, episode.since_ns + SUMMARY_NS)
            if episode.merged
            else episode.last_ns + HOLD_NS
            for episode in self._episodes.values()
        ]
        return min(times, default=None)

    def _summary(self, unix_s: float, episode: _Episode) -> view.Event:
        assert episode.note is not None
        count, seconds = episode.merged, (episode.last_ns - episode.since_ns) / SECOND
        episode.merged = 0
        if count == 1:
            return self._keep(unix_s, episode.note, severity(episode.note.kind), 1, 0.0)
        text = f"{episode.note.text} ({count} changes in {seconds:.0f} s)"
        note = Note(episode.note.kind, text, episode.note.data)
        return self._keep(unix_s, note, episode.worst, count, seconds)

    def _keep(self, unix_s: float, note: Note, severity: Severity, count: int, seconds: float) -> view.Event:
        self._number += 1
        event = view.Event(
            id=self._number,
            time=unix_s,
            kind=note.kind,
            text=note.text,
            severity=severity,
            count=count,
            seconds=seconds,
        )
        self.kept.append(event)
        return event
