"""The simulator with a cache: a run whose output is known is not repeated."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from narrows import _native
from narrows.backends import Output, Pace, sim
from narrows.backends.sim import Simulator, plan_json
from narrows.cache.entries import Cache
from narrows.errors import NarrowsError
from narrows.plan import Plan
from narrows.results.results import STOPPED
from narrows.results.tables import cannot_write


class Cached:
    """A simulator that looks up each run in a cache. Runs that are missing are executed and added.

    The plan and the simulator determine the output. The key contains the version of the simulator's behaviour
    (`narrows_sim::BEHAVIOUR`). During development, a changed simulator may have the same version. Except in
    release wheels, the key therefore also contains a hash of the native module and of
    `narrows.backends.sim`. Runs with Python controllers are not cached, because a plan contains only the
    name of a class. Runs with a capture are not cached either.

    Args:
        simulator: executes the runs that are not in the cache.
        cache: the cache.
    """

    name = Simulator.name
    most_jobs: int | None = Simulator.most_jobs

    def __init__(self, simulator: Simulator, cache: Cache) -> None:
        self._simulator, self._cache = simulator, cache
        self._lock = threading.Lock()
        self.found = 0
        """Number of runs of this process whose output was in the cache."""
        self.problem: str | None = None
        """The reason why an output could not be added to the cache (None: all were added). The sweep
        continues anyway."""

    def __reduce__(self) -> tuple[type[Cached], tuple[Simulator, Cache]]:
        """Make a copy for another process. The copy uses the same cache."""
        return Cached, (self._simulator, self._cache)

    def facts(self) -> dict[str, Any]:
        """Facts about the machine, which do not depend on the cache."""
        return self._simulator.facts()

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        self._simulator.check(plan)

    def run(self, plan: Plan) -> Output:
        """Run a plan, or return its known output."""
        if self._simulator.has_classes(plan) or plan.get("capture") is not None:
            return self._simulator.run(plan)
        self._simulator.refuse_if_ended()
        key = key_of(plan)
        if (known := self._cache.get(key)) is not None:
            with self._lock:
                self.found += 1
            return known
        output = self._simulator.run(plan)
        if STOPPED in output:
            return output
        try:
            self._cache.put(key, output)
        except OSError as error:
            self.problem = str(cannot_write(self._cache.folder, error))
        return output

    def load_class(self, name: str, folder: Path) -> str:
        """Load a class. Returns the SHA-256 of its file and of the files that it imports from its folder."""
        return self._simulator.load_class(name, folder)

    def check_parameters(self, name: str, params: Mapping[str, Any]) -> None:
        """If `name` is the name of a Python class, check that the class takes these parameters."""
        self._simulator.check_parameters(name, params)

    def cancel(self) -> None:
        """Tell all active runs to end, without waiting for their end."""
        self._simulator.cancel()

    def begin(self) -> None:
        """Prepare for new runs."""
        self._simulator.begin()

    def stop(self) -> None:
        """Tell all active runs to end, without waiting for their end.

        The output of each run contains its results up to the stop, and `stopped_s`.
        """
        self._simulator.stop()

    def pace(self) -> Pace:
        """The progress of the active runs."""
        return self._simulator.pace()

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Values that `cc` may have."""
        return self._simulator.congestion_controllers()

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Values that a controller's `kind` may have."""
        return self._simulator.rate_controllers()


def cached(folder: str | Path) -> Cached:
    """The simulator with a cache in a folder, e.g. `narrows.run(scenario, backend=cached("runs"))`.

    Raises:
        OutputError: if the folder cannot be used.
    """
    return Cached(Simulator(), Cache(Path(folder)))


def key_of(plan: Plan) -> str:
    """The key of a plan's output, as hexadecimal digits."""
    return hashlib.sha256(f"{_behaviour()}\n{plan_json(plan)}".encode()).hexdigest()


@functools.cache
def _behaviour() -> str:
    """The identity of the simulator's behaviour: its version and, except in a release, a hash of its files.

    Raises:
        NarrowsError: if the files have changed since this program began.
    """
    own = hashlib.sha256()
    if not _native.is_release:
        for module in (_native, sim):
            path = Path(str(module.__file__))
            if path.stat().st_mtime > sim.LOADED_S:
                raise NarrowsError(
                    f"cache: found a new {path.name}, expected the one loaded at startup; restart the program"
                )
            own.update(path.read_bytes())
    return f"narrows-sim {_native.behaviour} {own.hexdigest()}"
