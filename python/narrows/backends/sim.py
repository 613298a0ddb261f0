"""The backend that simulates in this process.

Time is virtual, and results are reproducible on every machine.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np

from narrows import _native, retired
from narrows.backends import CAPTURE, Output, Pace, captures
from narrows.custom import ClassFile, check_parameters, description, load
from narrows.errors import ORIGIN, NarrowsError, ScenarioError
from narrows.plan import Plan
from narrows.units import NANOS_PER_SEC

LOADED_S = time.time()
"""Time at which this program loaded the native module, as a value of `time.time`."""


class Simulator:
    """Runs plans in the native module. The native module releases the interpreter's lock while it runs.

    Args:
        congestion: your own congestion controllers. The keys are values of `cc` in the scenario. Each key
            maps to a class, or to a function that returns an instance, e.g. `functools.partial(Copa,
            delta=0.5)`. `narrows.custom` describes the classes. This argument is not needed if the scenario
            names the file of the class.
        controllers: the former name of `congestion` (version 0.2).
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
                raise TypeError(
                    "found both congestion and its old name controllers, expected only congestion"
                )
            retired.report(retired.caller(), "Simulator(controllers=...)", "Simulator(congestion=...)")
            congestion = controllers
        self._cancel = _native.Cancel()
        self._active: set[_native.Monitor] = set()
        self._is_stopped = False
        self._congestion = dict(congestion or {})
        self._files: dict[str, ClassFile] = {}

    def __reduce__(
        self,
    ) -> tuple[type[Simulator], tuple[dict[str, Callable[..., object]]], dict[str, dict[str, ClassFile]]]:
        """Pickle the simulator without its active runs.

        The copy, which is for another process, has its own runs.
        """
        return Simulator, (self._congestion,), {"_files": self._files}

    @property
    def _classes(self) -> dict[str, Callable[..., object]]:
        """All Python controllers by the value of `cc`."""
        return {**self._files, **self._congestion}

    def facts(self) -> dict[str, Any]:
        """The simulator records no facts, because its results do not depend on the machine."""
        return {}

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        for number, flow in enumerate(plan["flows"]):
            if flow["transport"]["kind"] == "program":
                raise ScenarioError(
                    "found a program, expected --on kernel or vm, because the simulator runs no programs",
                    f"flows.{number}.program",
                )
        try:
            _native.check(plan_json(plan), list(self._classes))
        except _native.PlanError as error:
            raise translate(str(error)) from None

    def run(self, plan: Plan) -> Output:
        """Run a plan. Captured packets are in a temporary folder, which the caller must move or remove."""
        if plan.get("capture") is None:
            return self._run(plan, None)
        with captures.kept_folder() as folder:
            try:
                return {**self._run(plan, str(folder)), CAPTURE: folder}
            except _native.CaptureError as error:
                raise captures.not_written(folder, captures.reason_of(error)) from None

    def _run(self, plan: Plan, capture: str | None) -> dict[str, Any]:
        monitor = _native.Monitor()
        self._active.add(monitor)
        try:
            self.refuse_if_ended()
            output = _native.run(plan_json(plan), self._cancel, self._classes, monitor, capture)
        except _native.PlanError as error:
            raise translate(str(error)) from None
        except (KeyboardInterrupt, _native.CaptureError):
            raise
        except BaseException as error:
            raise _of_class(error) from error.__cause__
        finally:
            self._active.discard(monitor)
        # The simulator counts a packet when its transmission begins. The count of a measurement interval can
        # therefore be one packet too high or too low, and the utilisation of a full link can exceed 1.
        # Counting the transmitted parts of packets would change all sampled rates. Therefore the utilisation
        # is capped at 1.
        output["links"]["utilisation"] = np.minimum(output["links"]["utilisation"], 1.0)
        return output

    def load_class(self, name: str, folder: Path) -> str:
        """Load a class. Returns the SHA-256 of its file and of the files that it imports from its folder."""
        self._files = {**self._files, name: load(name, folder)}
        return self._files[name].digest

    def check_parameters(self, name: str, params: Mapping[str, Any]) -> None:
        """If `name` is the name of a Python class, check that the class takes these parameters."""
        if (factory := self._classes.get(name)) is not None:
            check_parameters(factory, name, params)

    def has_classes(self, plan: Plan) -> bool:
        """Whether flows of this plan use Python controllers."""
        choices = [flow["transport"].get("cc") for flow in plan["flows"]]
        return any((cc["name"] if isinstance(cc, dict) else cc) in self._classes for cc in choices)

    def cancel(self) -> None:
        """Tell all runs to end, without waiting for their end."""
        self._cancel.set()

    def refuse_if_ended(self) -> None:
        """Refuse to begin a run after `stop` or `cancel`.

        Raises:
            KeyboardInterrupt: if `stop` or `cancel` was called.
        """
        if self._is_stopped or self._cancel.is_set():
            raise KeyboardInterrupt("the run was stopped before its start")

    def begin(self) -> None:
        """Prepare for new runs. Active runs that `stop` or `cancel` has told to end will still end."""
        self._cancel, self._is_stopped = _native.Cancel(), False

    def stop(self) -> None:
        """Tell all active runs to end, without waiting for their end.

        The output of each run contains its results up to the stop, and `stopped_s`.
        """
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
        own = [(name, description(factory)) for name, factory in self._congestion.items()]
        return own + _native.congestion_controllers()

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Values that a controller's `kind` may have."""
        return _native.rate_controllers()


_HOOKS = (
    "__init__",
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


def _of_class(error: BaseException) -> Exception:
    """An exception from a user's class, with a note that names the class, the method and the simulated time.

    The attribute `ORIGIN` has the same text as the note. The native module itself has no Python frame. The
    outermost frame with the name of a hook is therefore the method that the native module called. An
    exception that would end the program, such as SystemExit, is replaced by a `NarrowsError`.
    """
    origin = "a Python controller"
    for frame, _ in walk_tb(error.__traceback__):
        code, values = frame.f_code, frame.f_locals
        if code.co_name in _HOOKS and code.co_argcount >= 1:
            own, *event = (values.get(name) for name in code.co_varnames[: min(2, code.co_argcount)])
            now = getattr(event[0], "now", None) if event else None
            when = f", at {now:.9g} s of the simulation" if isinstance(now, float) else ""
            origin = f"{type(own).__qualname__}.{code.co_name}{when}"
            break
    if not isinstance(error, Exception):
        return NarrowsError(f"{origin}: found {type(error).__name__}, expected no exception")
    error.add_note(f"in {origin}")
    with contextlib.suppress(AttributeError, TypeError):
        setattr(error, ORIGIN, origin)
    return error


_PLACE = re.compile(r"(?P<key>\w+(?:\[\d+\])?(?:\.\w+(?:\[\d+\])?)*): (?P<message>.*)", re.DOTALL)


def translate(text: str) -> ScenarioError:
    """Convert an error message of the native module to an error about the scenario.

    `rate_controllers[0].params.eta` becomes the key `rate_controllers.0.params.eta`.
    """
    place = _PLACE.fullmatch(text)
    if place is None:
        return ScenarioError(text)
    return ScenarioError(place["message"], re.sub(r"\[(\d+)\]", r".\1", place["key"]))


def plan_json(plan: Plan) -> str:
    """A plan as JSON for the native module, without the parts that do not affect the output."""
    used = {key: value for key, value in plan.items() if key != "kernel"}  # ignored by the simulator
    return json.dumps(used, separators=(",", ":"), allow_nan=False)
