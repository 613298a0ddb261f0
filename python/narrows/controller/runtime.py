"""The thread that makes all decisions, and the queues of this thread."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from narrows.controller import flows, view
from narrows.controller.domain import Domain, Params
from narrows.controller.events import Events
from narrows.controller.limits import Warnings
from narrows.controller.messages import AgentMessage, Effect, Event, Note, SendToAgent

LOG = logging.getLogger("narrows.controller")
WARNINGS = Warnings(LOG)
T = TypeVar("T")

_NEVER_NS = 1 << 62
BACKLOG_MAX = 50_000
"""Maximum number of queued events. Further events are dropped. A long queue consists mostly of frames of
unknown hosts, so few other events are lost."""
BODIES_MAX = 64 << 20
"""Maximum number of characters in all queued message bodies of agents. Further bodies are dropped."""


class Runtime:
    """Passes events and time to a domain, and carries out its effects.

    Args:
        params: the domain's parameters.
        name: name of the controller.
        authenticated: whether agents and controller have keys. Only displayed on the page.
    """

    def __init__(self, params: Params, name: str = "controller", authenticated: bool = False) -> None:
        self.name, self.authenticated = name, authenticated
        self.is_active: Callable[[], bool] = lambda: True
        self.started_ns = time.monotonic_ns()
        self.domain = Domain(self.started_ns, params)
        self.to_switch: Callable[[Effect], None] = lambda _: None
        self.to_agent: Callable[[SendToAgent], None] = lambda _: None
        self._events: queue.Queue[Event | None] = queue.Queue(BACKLOG_MAX)
        self._bodies = 0
        """Number of characters in the queued message bodies."""
        self._bodies_lock = threading.Lock()
        self._lock = threading.Lock()
        self._noted = Events()
        self._thread = threading.Thread(target=self._run, name="decide", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._events.put(None)
        self._thread.join(timeout=5)

    def restart(self, note: Note) -> None:
        """Discards the state of the network and adds a note.

        Switches keep their entries for a while, as after a start of the controller.
        """
        with self._lock:
            self.domain = Domain(time.monotonic_ns(), self.domain.params)
        self._note(partial(self._noted.add, note=note))

    def put(self, event: Event) -> None:
        """Queues an event. Any thread can call this method."""
        if not self._queue(event):
            WARNINGS.warn("too many events: dropped %s", type(event).__name__)

    def note(self, note: Note) -> None:
        """Adds a note that does not come from the domain. Any thread can call this method."""
        self._note(partial(self._noted.add, note=note))

    def look(self, reader: Callable[[Domain, int], T]) -> T:
        """Calls `reader` with the domain and the time. No decision is made during the call.

        Returns the result of `reader`.
        """
        with self._lock:
            return reader(self.domain, time.monotonic_ns())

    def uptime_s(self) -> float:
        """Time since the start."""
        return (time.monotonic_ns() - self.started_ns) / 1e9

    def state(self, flows_max: int | None = None) -> view.State:
        """All data of the page.

        Args:
            flows_max: largest number of flows, the fastest first (None: all).
        """

        def read(domain: Domain, now_ns: int) -> tuple[view.State, flows.Ports]:
            state = view.State(
                name=self.name,
                uptime_s=(now_ns - self.started_ns) / 1e9,
                authenticated=self.authenticated,
                active=self.is_active(),
                topology=view.topology(domain),
                flow_count=0,
                flows=[],
                congestion=view.congestion(domain, now_ns),
                agents=view.agents(domain, now_ns),
            )
            return state, flows.ports(domain)

        state, ports = self.look(read)
        if flows_max == 0:
            return state.model_copy(update={"flow_count": sum(len(port[2]) for port in ports)})
        count, shown = flows.select(ports, flows.Query(limit=flows_max))
        return state.model_copy(update={"flow_count": count, "flows": shown})

    def select_flows(self, query: flows.Query) -> tuple[int, list[view.Flow]]:
        """The number of matching flows, and the flows that the query's offset and limit select."""
        return flows.select(self.look(lambda domain, _: flows.ports(domain)), query)

    def events(self, after: int = 0) -> list[view.Event]:
        """Events after number `after`, oldest first."""
        with self._lock:
            return [event for event in self._noted.kept if event.id > after]

    def _queue(self, event: Event) -> bool:
        """Queues an event if the queue has room. Returns whether it was queued."""
        size = _size(event)
        with self._bodies_lock:
            if size and self._bodies + size > BODIES_MAX:
                return False
            try:
                self._events.put_nowait(event)
            except queue.Full:
                return False
            self._bodies += size
        return True

    def _run(self) -> None:
        while True:
            # Hold the lock, because other threads add notes and replace the domain.
            with self._lock:
                timer_ns = min(self.domain.next_timer_ns(), self._noted.next_timer_ns() or _NEVER_NS)
            wait_ns = timer_ns - time.monotonic_ns()
            try:
                event = self._events.get(timeout=max(0.0, wait_ns / 1e9))
            except queue.Empty:
                self._decide(self.domain.tick)
                self._note(self._noted.tick)
                continue
            if event is None:
                return
            with self._bodies_lock:
                self._bodies -= _size(event)
            self._decide(lambda now, event=event: self.domain.handle(now, event))  # type: ignore[misc]
            if self.domain.next_timer_ns() <= time.monotonic_ns():
                self._decide(self.domain.tick)
                self._note(self._noted.tick)

    def _decide(self, step: Callable[[int], list[Effect]]) -> None:
        try:
            with self._lock:
                effects = step(time.monotonic_ns())
            self._perform(effects)
        except Exception:
            # If the handling of one event fails because of a bug, the control of the network must continue.
            LOG.exception("cannot handle an event")

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Note():
                    self._note(partial(self._noted.add, note=effect))
                case SendToAgent():
                    self.to_agent(effect)
                case _:
                    self.to_switch(effect)

    def _note(self, step: Callable[[int, float], list[view.Event]]) -> None:
        with self._lock:
            new = step(time.monotonic_ns(), time.time())
        for event in new:
            LOG.info("%s: %s", event.kind, event.text)


def _size(event: Event) -> int:
    return len(event.body) if isinstance(event, AgentMessage) else 0
