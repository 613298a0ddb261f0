"""The controller merges events that alternate quickly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows.controller.domain import Params
from narrows.controller.events import EVENTS_KEPT, HOLD_NS, SECOND, SUMMARY_NS, Events, severity
from narrows.controller.messages import Note
from narrows.controller.runtime import Runtime

HOUR = 3600 * SECOND


def change(is_congested, port=1):
    kind = "congestion" if is_congested else "clear"
    what = "congested (queue)" if is_congested else "no longer congested"
    return Note(kind, f"eth{port} of box is {what}", {"agent": "box", "port": port})


def run(events, until_ns, now_ns=0):
    new = []
    while (at := events.next_timer_ns()) is not None and at <= until_ns:
        assert at >= now_ns
        now_ns = at
        new += events.tick(now_ns, now_ns / 1e9)
    return new


def test_2086_changes_in_100_s_are_three_events():
    events, step = Events(), 100 * SECOND // 2086
    new = []
    for number in range(2086):
        new += events.add(number * step, number * step / 1e9, change(number % 2 == 0))
    assert [event.kind for event in new] == ["congestion", "clear"], "the first begin and end appear at once"
    (merged,) = run(events, HOUR)
    assert (merged.count, merged.kind, merged.severity) == (2084, "clear", "warning")
    assert merged.seconds == pytest.approx(100, abs=0.2)
    assert merged.text == "eth1 of box is no longer congested (2084 changes in 100 s)"
    assert [event.id for event in events.kept] == [1, 2, 3]


def test_the_worst_pattern_adds_180_events_an_hour():
    events, pattern = Events(), HOLD_NS + 2
    for start in range(0, 10 * HOUR, pattern):
        for number in range(3):
            events.add(start + number, 0.0, change(number % 2 == 0))
    run(events, 11 * HOUR, 10 * HOUR)
    assert events.kept[-1].id <= 10 * 180 + 3


def test_the_page_gets_merged_events():
    runtime = Runtime(Params())
    runtime._perform([change(number % 2 == 0) for number in range(2086)])
    assert [event.kind for event in runtime.events()] == ["congestion", "clear"]


def test_a_single_episode_appears_at_once():
    events = Events()
    assert [e.kind for e in events.add(0, 0.0, change(True))] == ["congestion"]
    assert [e.kind for e in events.add(5 * SECOND, 5.0, change(False))] == ["clear"]
    assert run(events, HOUR) == []


def test_kept_events_cover_hours_while_four_ports_flap():
    events = Events()
    for second in range(0, 3 * 3600, 2):
        for port in range(4):
            events.add(second * SECOND, float(second), change(second % 4 == 0, port))
    run(events, 4 * HOUR, 3 * HOUR)
    assert len(events.kept) < EVENTS_KEPT / 2
    assert events.kept[0].time == 0.0
    assert sum(event.count for event in events.kept) == 4 * 3 * 3600 // 2


def test_flapping_without_end_is_reported_every_five_minutes():
    events, new = Events(), []
    for second in range(1000):
        new += events.add(second * SECOND, float(second), change(second % 2 == 0))
    assert [event.count > 1 for event in new] == [False, False, True, True, True]
    assert all(event.seconds * SECOND <= SUMMARY_NS for event in new)


def test_subjects_are_independent():
    events = Events()
    for port in range(5):
        assert len(events.add(0, 0.0, change(True, port))) == 1
    down = Note("port-down", "port 1 is down", {"switch": 1, "port": 1})
    assert [e.severity for e in events.add(0, 0.0, down)] == ["warning"]


def test_severities():
    assert [severity(kind) for kind in ("host-new", "congestion", "switch-down")] == [
        "info",
        "warning",
        "error",
    ]


def test_memory_is_freed_when_subjects_are_quiet():
    events = Events()
    for port in range(1000):
        events.add(port, 0.0, change(True, port))
    run(events, HOUR)
    assert events.next_timer_ns() is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * HOLD_NS)), max_size=60))
def test_every_change_is_counted_once_and_the_last_state_appears(changes):
    events, now, last = Events(), 0, {}
    for number, (port, pause) in enumerate(changes):
        now += pause
        note = change(number % 2 == 0, port)
        events.add(now, now / 1e9, note)
        last[port] = note.text
    run(events, now + HOUR, now)
    assert sum(event.count for event in events.kept) == len(changes)
    for port, text in last.items():
        shown = [event.text for event in events.kept if f"eth{port} " in event.text]
        assert shown[-1].startswith(text)
