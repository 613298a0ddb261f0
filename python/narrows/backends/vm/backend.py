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

from narrows.backends import BY_AGENT, Output
from narrows.backends.kernel import cc, features
from narrows.backends.kernel.backend import check_plan
from narrows.backends.vm import closure, image, package, wire
from narrows.backends.vm.errors import VmError
from narrows.backends.vm.machine import Machine, command, version
from narrows.backends.vm.turns import turn
from narrows.errors import ScenarioError
from narrows.scenario.parts import Plan

MOST = 2
"""Guests at work at a time, of all callers that share a cache; one that is booted to be saved is none."""
_PATIENCE_SECONDS = 900.0
"""Real time that a run may take beside ..."""
_SLOWEST = 60.0
"""... this much for each second of virtual time."""
_NAP_SECONDS = 0.1


class Vm:
    """Runs each plan in a guest of its own, which begins from the same saved state.

    It is booted once, when it is first needed: what guests refuse they refuse before.

    Args:
        say: told in a line what takes a while.

    Raises:
        VmError: one line, if guests are not prepared.
    """

    name = "vm"
    most_jobs: int | None = MOST

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        image.prepared()
        self._say = say
        self._saved: image.Image | None = None
        self._making = threading.Lock()
        self._cancelled = threading.Event()

    @property
    def _image(self) -> image.Image:
        """The saved guest; made if there is none."""
        with self._making:
            if self._saved is None:
                self._saved = image.ensure(self._say)
            return self._saved

    def facts(self) -> dict[str, Any]:
        """Where runs happen."""
        saved = self._image
        kernel = saved.kernel
        return {
            **{key: value for key, value in saved.facts.items() if key != "congestion_controls"},
            "guest": {
                "kernel_package": f"{kernel.package} {kernel.version}",
                "emulator": version(),
                "clock": "virtual: 1 ns for each instruction",
            },
        }

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        if plan["controllers"]:
            raise ScenarioError(
                f"found {plan['controllers'][0]['kind']!r}, expected no rate controller: "
                "the agent as a switch was not tried in guests",
                "controllers.0.kind",
            )
        check_plan(in_guest(plan))
        features.require(lambda: features.asked(in_guest(plan)["kernel"]))  # its programs are this machine's

    def run(self, plan: Plan) -> Output:
        """Run a plan."""
        with tempfile.TemporaryDirectory(prefix="narrows-vm-") as name:
            folder = Path(name)
            told = folder / "plan"
            told.write_text(
                json.dumps(in_guest(plan), separators=(",", ":"), allow_nan=False), encoding="utf-8"
            )
            saved = self._image
            words = command(saved.kernel.image, saved.initramfs, folder, told)
            words += ["-incoming", f"exec:cat {shlex.quote(str(saved.state))}"]
            with (
                turn(package.cache() / "turns", MOST, self._cancelled, self._say),
                Machine(words, folder) as machine,
            ):
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
        """Names that `cc` may take: what the guest's kernel says, or before its first boot is to have.

        Those that narrows-agent loads there are among them where it is.
        """
        with self._making:
            self._saved = self._saved or image.existing()
        ahead = [*image.OFFERED, *(cc.NAMES if closure.agent() else ())]
        names = self._saved.facts["congestion_controls"] if self._saved else ahead
        return [(name, BY_AGENT if name in cc.NAMES else "of the guest's kernel") for name in names]

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Names that a controller's `kind` may take: none, see `check` and `closure.agent`."""
        return []


def in_guest(plan: Plan) -> Plan:
    """The plan with what is else there: netem delays and Open vSwitch's module unless it asks for others.

    Relay and userspace datapath are programs, and at 1 GIPS each packet costs them tens of microseconds.
    """
    given = {key: value for key, value in plan.get("kernel", {}).items() if value is not None}
    return {**plan, "kernel": {"delay": "netem", "datapath": "system"} | given}
