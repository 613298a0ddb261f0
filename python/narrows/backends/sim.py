"""The simulator, in this process. Time is virtual, and results are reproducible on every machine."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np

from narrows import _native, retired
from narrows.backends import Output, Pace
from narrows.custom import check_parameters, load
from narrows.errors import OutputError, ScenarioError
from narrows.plan import Plan
from narrows.units import NANOS_PER_SEC

LOADED_S = time.time()
"""When this program loaded the native module, as `time.time`."""


class Simulator:
    """Runs plans in the native module, which releases the interpreter's lock.

    Args:
        congestion: your own congestion controllers by the value of `cc` in the scenario: classes, or
            functions that return an instance, e.g. `functools.partial(Copa, delta=0.5)`. `narrows.custom`
            describes the classes. A scenario can also name a class by its file, without this argument.
        controllers: the same as `congestion`. Version 0.2 used this name.
    """

    name = "sim"
    most_jobs: int | None = None

    def __init__(
        self,
        congestion: Mapping[str, Callable[..., object]] | None = None,
        *,
        controllers: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        if controllers is not None:
            if congestion is not None:
                raise TypeError("found also controllers, the old name of congestion, expected one of them")
            retired.report(retired.caller(), "Simulator(controllers=...)", "Simulator(congestion=...)")
            congestion = controllers
        self._cancel = _native.Cancel()
        self._active: set[_native.Monitor] = set()
        self._is_stopped = False
        self._congestion = dict(congestion or {})

    def __reduce__(self) -> tuple[type[Simulator], tuple[dict[str, Callable[..., object]]]]:
        """A copy in another process has its own runs."""
        return Simulator, (self._congestion,)

    def facts(self) -> dict[str, Any]:
        """The simulator records no facts, because its results do not depend on the machine."""
        return {}

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        try:
            _native.check(plan_json(plan), list(self._congestion))
        except _native.PlanError as error:
            raise translate(str(error)) from None

    def run(self, plan: Plan) -> Output:
        """Run a plan. The files of a capture are in a temporary folder, from which the caller moves them."""
        if "capture" not in plan:
            return self._run(plan, None)
        folder = Path(tempfile.mkdtemp(prefix="narrows-capture-"))
        try:
            output = self._run(plan, str(folder))
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise OutputError(f"{folder}: cannot write a capture ({error.strerror or error})") from None
            raise
        return {**output, "logs": {path.name: path for path in sorted(folder.iterdir())}}

    def _run(self, plan: Plan, capture: str | None) -> dict[str, Any]:
        monitor = _native.Monitor()
        self._active.add(monitor)
        try:
            self.refuse_if_ended()
            output = _native.run(plan_json(plan), self._cancel, self._congestion, monitor, capture)
        except _native.PlanError as error:
            raise translate(str(error)) from None
        except Exception as error:
            _say_where(error)
            raise
        finally:
            self._active.discard(monitor)
        # The simulator counts a packet when its transmission begins. So the measurement interval can have one
        # packet too many or too few, and the utilisation of a full link can exceed 1. Counting transmitted
        # parts of packets would change all sampled rates, so the value is capped.
        output["links"]["utilisation"] = np.minimum(output["links"]["utilisation"], 1.0)
        return output

    def add_class(self, name: str, factory: Callable[..., object]) -> None:
        """Add a congestion controller, or replace it.

        Args:
            name: the value of `cc`.
            factory: a class, or a function that returns an instance.
        """
        self._congestion = {**self._congestion, name: factory}

    def load_class(self, name: str, folder: Path) -> str:
        """Load the class of a file, unless it is known, and return the SHA-256 of the file."""
        source = load(name, folder)
        if self._congestion.get(name) != source:
            self.add_class(name, source)
        return source.digest

    def check_parameters(self, name: str, params: Mapping[str, Any]) -> None:
        """Check that the class with this name, if there is one, takes these parameters."""
        if name in self._congestion:
            check_parameters(self._congestion[name], name, params)

    def has_classes(self, plan: Plan) -> bool:
        """Whether flows of this plan use Python controllers."""
        choices = [flow["transport"]["cc"] for flow in plan["flows"] if flow["transport"]["kind"] == "tcp"]
        return any((cc if isinstance(cc, str) else cc["name"]) in self._congestion for cc in choices)

    def cancel(self) -> None:
        """End all runs soon."""
        self._cancel.set()

    def refuse_if_ended(self) -> None:
        """Refuse to begin a run after `stop` or `cancel`.

        Raises:
            KeyboardInterrupt: if one of them was called.
        """
        if self._is_stopped or self._cancel.is_set():
            raise KeyboardInterrupt("the run was stopped before its start")

    def begin(self) -> None:
        """Prepare for new runs. Active runs stay cancelled or stopped."""
        self._cancel, self._is_stopped = _native.Cancel(), False

    def stop(self) -> None:
        """End all runs soon. Their outputs contain the results so far, and `stopped_s`."""
        self._is_stopped = True
        for monitor in self._active.copy():
            monitor.stop()

    def pace(self) -> Pace:
        """The progress of the active runs."""
        active = self._active.copy()
        nanos = sum(monitor.nanos() for monitor in active)
        return Pace(nanos / NANOS_PER_SEC, sum(monitor.events() for monitor in active))

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Values that `cc` may have."""
        own = [(name, (of.__doc__ or "").strip().split("\n")[0]) for name, of in self._congestion.items()]
        return own + _native.congestion_controllers()

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Values that a controller's `kind` may have."""
        return _native.rate_controllers()


_HOOKS = (
    "on_ack",
    "on_congestion",
    "on_established",
    "on_sample",
    "on_lost",
    "on_recovered",
    "on_undo",
    "on_restart",
    "on_timer",
    "trace",
)


def _say_where(error: Exception) -> None:
    """Add a note to an exception of a user's class: the class, the method and the simulated time.

    The native module has no Python frame, so the outermost frame with the name of a hook is the method that
    the native module called.
    """
    for frame, _ in walk_tb(error.__traceback__):
        code, values = frame.f_code, frame.f_locals
        if code.co_name in _HOOKS and code.co_argcount >= 1:
            own, event = (*(values.get(name) for name in code.co_varnames[:2]), None)[:2]
            now = getattr(event, "now", None)
            when = f", at {now:.9g} s of the simulation" if isinstance(now, float) else ""
            error.add_note(f"in {type(own).__qualname__}.{code.co_name}{when}")
            return


_PLACE = re.compile(r"(?P<key>\w+(?:\[\d+\])?(?:\.\w+(?:\[\d+\])?)*): (?P<message>.*)", re.DOTALL)


def translate(text: str) -> ScenarioError:
    """Convert an error of the native module to one about the scenario.

    `rate_controllers[0].params.eta` becomes the key `rate_controllers.0.params.eta`.
    """
    place = _PLACE.fullmatch(text)
    if place is None:
        return ScenarioError(text)
    return ScenarioError(place["message"], re.sub(r"\[(\d+)\]", r".\1", place["key"]))


def plan_json(plan: Plan) -> str:
    """A plan as JSON for the native module, without the parts that do not affect the output."""
    used = {key: value for key, value in plan.items() if key != "kernel"}  # the simulator does not use it
    return json.dumps(used, separators=(",", ":"), allow_nan=False)
