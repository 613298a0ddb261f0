"""The work of `narrows vm`: the requirements of guests, and the saved guest."""

from __future__ import annotations

import typer

from narrows.backends.vm import image, package
from narrows.backends.vm.errors import VmError
from narrows.cli.commands.shared import say
from narrows.signals import terminable

NOT_READY = 1


def prepare(*, again: bool, kernel: str | None) -> None:
    """Prepare the guest. If a signal arrives, clean up before the program ends."""
    with terminable():
        _prepare(again, kernel)


def _prepare(again: bool, asked: str | None) -> None:
    done = False
    if lacking := package.missing():
        package.install(lacking, say)
        if still := package.missing():
            raise VmError(f"found no {', '.join(still)} after installing packages")
        done = True
    kernel = package.found()
    if kernel is None or again or (asked is not None and package.resolved(asked) != kernel.package):
        kernel = package.fetch(say, asked or package.METAPACKAGE)
        done = True
    known = image.existing()
    made = image.ensure(say)
    print(f"kernel: {kernel.package} {kernel.version} in {kernel.folder}, sha256 {kernel.sha256[:16]}...")
    print(f"guest: saved in {made.folder}")
    if not done and known:
        print("everything was already prepared")


def status() -> None:
    """Print the state of programs, kernel and guest."""
    kernel, lacking = package.found(), package.missing()
    print("programs: " + (f"found no {', '.join(lacking)}" if lacking else "all installed"))
    print(f"kernel: {kernel.package} {kernel.version} in {kernel.folder}" if kernel else "kernel: none")
    saved = None if lacking else image.existing()
    print(f"guest: saved in {saved.folder}" if saved else "guest: none is saved for the current files")
    if saved is None:
        print("run narrows vm prepare to get the missing parts")
        raise typer.Exit(NOT_READY)
    print(f"congestion controllers: {', '.join(saved.facts['congestion_controls'])}")
