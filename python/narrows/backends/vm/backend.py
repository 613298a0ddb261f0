"""The vm backend: a plan on the stacks of a distribution's kernel, in a guest whose time is virtual."""

from __future__ import annotations

import json
import shlex
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from narrows.backends import Output
from narrows.backends.kernel.backend import check_plan
from narrows.backends.vm import image, wire
from narrows.backends.vm.errors import VmError
from narrows.backends.vm.machine import Machine, command, version
from narrows.errors import ScenarioError
from narrows.scenario.parts import Plan

_PATIENCE_SECONDS = 900.0
"""Real time that a run may take beside ..."""
_SLOWEST = 60.0
"""... this much for each second of virtual time."""
_NAP_SECONDS = 0.1


class Vm:
    """Runs each plan in a guest of its own, which begins from the same saved state.

    Args:
        say: told in a line what takes a while.

    Raises:
        VmError: one line, if guests are not prepared.
    """

    name = "vm"
    most_jobs: int | None = 2

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._image = image.ensure(say)
        self._cancelled = threading.Event()

    def facts(self) -> dict[str, Any]:
        """Where runs happen."""
        kernel = self._image.kernel
        return {
            **{key: value for key, value in self._image.facts.items() if key != "congestion_controls"},
            "guest": {
                "kernel_package": f"{kernel.package} {kernel.version}",
                "emulator": version(),
                "clock": "virtual: 1 ns for each instruction",
            },
        }

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        layout = check_plan(in_guest(plan))
        if layout.control:
            raise ScenarioError("found an SDN controller, expected none: guests have no Python for it", "sdn")

    def run(self, plan: Plan) -> Output:
        """Run a plan."""
        with tempfile.TemporaryDirectory(prefix="narrows-vm-") as name:
            folder = Path(name)
            told = folder / "plan"
            told.write_text(
                json.dumps(in_guest(plan), separators=(",", ":"), allow_nan=False), encoding="utf-8"
            )
            words = command(self._image.kernel.image, self._image.initramfs, folder, told)
            words += ["-incoming", f"exec:cat {shlex.quote(str(self._image.state))}"]
            with Machine(words, folder) as machine:
                machine.wake()
                answer = self._answer(machine, folder / "answer", plan["duration"] / 1e9)
        if "refused" in answer:
            raise ScenarioError(answer["refused"], answer["key"])
        if "failed" in answer:
            raise VmError(f"in the guest: {answer['failed']}")
        output: dict[str, Any] = wire.unpack(answer["output"])
        return output

    def _answer(self, machine: Machine, file: Path, duration: float) -> dict[str, Any]:
        patience = _PATIENCE_SECONDS + _SLOWEST * duration
        until = time.monotonic() + patience
        while not self._cancelled.wait(_NAP_SECONDS):
            ended = machine.ended
            text = file.read_bytes()
            if text.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(text)
                return answer
            if ended:
                raise VmError(f"the guest ended: {machine.last_words()}")
            if time.monotonic() > until:
                raise VmError(f"the guest did not end within {patience:.0f} s: {machine.last_words()}")
        raise KeyboardInterrupt

    def cancel(self) -> None:
        """Make all runs end soon."""
        self._cancelled.set()

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Names that `cc` may take: what the guest's kernel offers."""
        return [(name, "of the guest's kernel") for name in self._image.facts["congestion_controls"]]

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Names that a controller's `kind` may take: none, see `closure.programs`."""
        return []


def in_guest(plan: Plan) -> Plan:
    """The plan with what is else there: netem delays unless the scenario asks for the relay.

    The relay is a program, and at 1 GIPS each packet that it carries costs tens of microseconds.
    """
    given = {key: value for key, value in plan.get("kernel", {}).items() if value is not None}
    return {**plan, "kernel": {"delay": "netem"} | given}
