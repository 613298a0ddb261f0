"""Runs a guest in a QEMU process, and controls it by QMP over QEMU's standard input and output."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from narrows.backends.vm.errors import VmError

CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+lahf-lm"
"""x86-64-v2, the level that numpy needs. Programs that use later extensions of the instruction set would be
slow to emulate."""
MEMORY_MB = 2048
_NAP_SECONDS = 0.05
_turns = itertools.count(os.getpid())
QEMU = "qemu-system-x86_64"
KERNEL_WORDS = (
    "mitigations=off clearcpuid=112 tsc=reliable thash_entries=256 no5lvl nowatchdog "
    "console=ttyS0 loglevel=4 panic=-1 random.trust_bootloader=on net.ifnames=0"
)
"""Settings that make emulation fast. With clearcpuid=112 (rep_good), Linux copies and clears pages without
`rep` instructions."""


def command(kernel: Path, initramfs: Path, folder: Path, plan: Path) -> list[str]:
    """QEMU's command line.

    The guest has one processor. The guest's clock advances by one nanosecond for each instruction and skips
    idle time (`icount`, `sleep=off`). The guest's date also follows this clock.

    Args:
        kernel: the kernel's image.
        initramfs: the archive of all files of the guest.
        folder: the folder for the console's output and the answer.
        plan: the file that the guest reads.
    """
    return [
        *("setpriv", "--pdeathsig", "KILL", QEMU),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35,usb=off,smbus=off,sata=off", "-cpu", CPU, "-smp", "1", "-m", str(MEMORY_MB)),
        *("-accel", "tcg", "-icount", "shift=0,sleep=off", "-rtc", "base=2020-01-01,clock=vm"),
        *("-kernel", str(kernel), "-initrd", str(initramfs), "-append", KERNEL_WORDS),
        *("-device", "pvpanic", "-action", "panic=pause"),
        *("-chardev", f"file,id=console,path={folder / 'console'}", "-serial", "chardev:console"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"file,id=answer,path={folder / 'answer'}"),
        *("-device", "virtserialport,chardev=answer,name=narrows"),
        *("-fw_cfg", f"name=opt/narrows/plan,file={plan}"),
        *("-chardev", "stdio,id=control,signal=off", "-mon", "chardev=control,mode=control"),
    ]


def version() -> str:
    """The first line of QEMU's `--version`."""
    try:
        done = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise VmError(f"found no {QEMU}, which guests need: run narrows vm prepare") from None
    return done.stdout.partition("\n")[0]


def _alone() -> list[str]:
    """Prefix of a command that pins QEMU to one processor, as a batch job.

    QEMU has a race between its threads. A second thread may find the guest's processor asleep before the
    thread that executes the guest has counted the last instructions. If so, the second thread advances the
    clock too far, by some microseconds (icount_start_warp_timer, softmmu/icount.c). The race is rare if all
    threads of QEMU share one processor, and QEMU is a batch job. A waking thread of a batch job does not
    preempt the running thread.
    """
    processors = sorted(os.sched_getaffinity(0))
    processor = processors[next(_turns) % len(processors)]
    return ["chrt", "--batch", "0", "taskset", "--cpu-list", str(processor)]


class Machine:
    """A QEMU that runs until the context ends.

    Args:
        words: QEMU's command line.
        folder: the folder for the console's output, the answer and QEMU's messages.
        alone: whether to pin QEMU to one processor, which is not necessary for a guest that measures
            nothing.
    """

    def __init__(self, words: Sequence[str], folder: Path, alone: bool = True) -> None:
        self.folder = folder
        self._errors = (folder / "qemu").open("w+b")
        self._process = subprocess.Popen(
            ["nice", "-n", "10", *(_alone() if alone else []), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C at the terminal must not reach QEMU
        )
        self._events: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ask("qmp_capabilities")

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill QEMU and wait for its end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._errors.close()

    def ask(self, what: str, **arguments: Any) -> Any:
        """Send a QMP command and return its answer.

        Raises:
            VmError: if QEMU ends or refuses.
        """
        stdin = self._process.stdin
        assert stdin is not None
        request = {"execute": what} | ({"arguments": arguments} if arguments else {})
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise VmError(f"QEMU ended: {self.last_words()}") from None
        while True:
            message = self.receive(("return", "error"))
            if "error" in message:
                raise VmError(f"QEMU refuses {what}: {message['error'].get('desc')}")
            return message["return"]

    def receive(self, keys: Sequence[str], timeout: float = 60.0, event: str | None = None) -> dict[str, Any]:
        """Return the next message that has one of these keys.

        If `event` is given, the message must have this event.

        Raises:
            VmError: if no such message arrives in time.
        """

        def find() -> int | None:
            for i, message in enumerate(self._events):
                if any(key in message for key in keys) and (event is None or message.get("event") == event):
                    return i
            return None

        with self._news:
            self._news.wait_for(lambda: find() is not None or self._ended, timeout)
            place = find()
            if place is None:
                why = "ended" if self._ended else f"did not answer within {timeout:.0f} s"
                raise VmError(f"the guest {why}: {self.last_words()}")
            return self._events.pop(place)

    def save(self, state: Path) -> None:
        """Write the state of the machine, which must have stopped, to a file.

        Raises:
            VmError: if the state cannot be saved.
        """
        self.ask("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        self.ask("migrate", uri=f"exec:cat > {shlex.quote(str(state))}")
        while (status := self.ask("query-migrate")["status"]) != "completed":
            if status in ("failed", "cancelled"):
                raise VmError("saving the guest failed: is the disk full?")
            time.sleep(_NAP_SECONDS)

    def wake(self) -> None:
        """Resume the machine after it has read its saved state (`-incoming`)."""
        while self.ask("query-status")["status"] == "inmigrate":
            time.sleep(_NAP_SECONDS)
        self.ask("cont")

    @property
    def ended(self) -> bool:
        """Whether QEMU has ended."""
        return self._ended

    def last_words(self) -> str:
        """The last lines of QEMU's messages, or of the console if QEMU printed none."""
        for name in ("qemu", "console"):
            with contextlib.suppress(OSError):
                lines = (self.folder / name).read_text("utf-8", "replace").strip().splitlines()
                if lines:
                    return " / ".join(line.strip() for line in lines[-4:])
        return "it printed nothing"

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        for line in stdout:
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                with self._news:
                    self._events.append(message)
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
