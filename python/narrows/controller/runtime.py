"""The one thread in which all decisions are made, and what runs around it."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from narrows.controller import view
from narrows.controller.domain import Domain, Params
from narrows.controller.messages import Effect, Event, Note, Say

LOG = logging.getLogger("narrows.controller")
T = TypeVar("T")

EVENTS_KEPT = 1000
"""For the page."""
BACKLOG_MAX = 50_000
"""Events that wait to be decided; beyond it frames of unknown hosts and the like are lost, as on a full
queue."""


class Runtime:
    """Feeds a domain with events and time, and carries out what it wants.

    Args:
        params: the domain's parameters.
        name: what the controller calls itself.
        authenticated: whether agents share a secret with it, for people to see.
    """

    def __init__(self, params: Params, name: str = "controller", authenticated: bool = False) -> None:
        self.name, self.authenticated = name, authenticated
        self.started_ns = time.monotonic_ns()
        self.domain = Domain(self.started_ns, params)
        self.to_switch: Callable[[Effect], None] = lambda _: None
        self.to_agent: Callable[[Say], None] = lambda _: None
        self._events: queue.Queue[Event | None] = queue.Queue(BACKLOG_MAX)
        self._lock = threading.Lock()
        self._noted: deque[view.Event] = deque(maxlen=EVENTS_KEPT)
        self._numbers = itertools.count(1)
        self._thread = threading.Thread(target=self._run, name="decide", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._events.put(None)
        self._thread.join(timeout=5)

    def put(self, event: Event) -> None:
        """Something has happened; any thread may say so."""
        try:
            self._events.put_nowait(event)
        except queue.Full:
            LOG.warning("too many events: %s was lost", type(event).__name__)

    def look(self, reader: Callable[[Domain, int], T]) -> T:
        """What `reader` sees of the domain and the time between two decisions."""
        with self._lock:
            return reader(self.domain, time.monotonic_ns())

    def state(self) -> view.State:
        """All that the page shows."""

        def read(domain: Domain, now_ns: int) -> view.State:
            return view.State(
                name=self.name,
                uptime_s=(now_ns - self.started_ns) / 1e9,
                authenticated=self.authenticated,
                topology=view.topology(domain),
                flows=view.flows(domain),
                congestion=view.congestion(domain, now_ns),
                agents=view.agents(domain, now_ns),
            )

        return self.look(read)

    def events(self, after: int = 0) -> list[view.Event]:
        """What happened after event number `after`, the oldest first."""
        with self._lock:
            return [event for event in self._noted if event.id > after]

    def _run(self) -> None:
        while True:
            wait_ns = self.domain.next_timer_ns() - time.monotonic_ns()
            try:
                event = self._events.get(timeout=max(0.0, wait_ns / 1e9))
            except queue.Empty:
                self._decide(self.domain.tick)
                continue
            if event is None:
                return
            self._decide(lambda now, event=event: self.domain.handle(now, event))  # type: ignore[misc]
            if self.domain.next_timer_ns() <= time.monotonic_ns():
                self._decide(self.domain.tick)

    def _decide(self, step: Callable[[int], list[Effect]]) -> None:
        try:
            with self._lock:
                effects = step(time.monotonic_ns())
        except Exception:
            # A mistake of ours in one event must not take the network's control away.
            LOG.exception("an event could not be handled")
            return
        self._perform(effects)

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Note(kind, text):
                    LOG.info("%s: %s", kind, text)
                    with self._lock:
                        number = next(self._numbers)
                        self._noted.append(view.Event(id=number, time=time.time(), kind=kind, text=text))
                case Say():
                    self.to_agent(effect)
                case _:
                    self.to_switch(effect)
