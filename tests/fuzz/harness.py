#!/usr/bin/env python
"""Runs one target of this folder under Atheris: libFuzzer, guided by the coverage of Python code.

    FUZZ_TARGET=NAME tests/fuzz/harness.py [options of libFuzzer] [folders of inputs]

libFuzzer starts this program again when it merges corpora, so the name is in the environment.

A target is a module with a function `run(data: bytes)`. A finding is an exception that leaves `run`, an
input that takes too long, and an input that takes too much memory. libFuzzer checks the memory of the
process only once per second, so it is checked here after each input, too.
"""

from __future__ import annotations

import importlib
import logging
import os
import resource
import sys

import atheris

INSTRUMENTED = ["narrows.controller", "os_ken.ofproto", "os_ken.lib.packet", "uvicorn", "h11", "starlette"]
"""Packages whose coverage guides the fuzzer."""
GROWTH_MAX_KIB = 64 << 10
"""Largest growth of the process by one input."""


def main() -> None:
    """Runs the target that FUZZ_TARGET names."""
    name = os.environ["FUZZ_TARGET"]
    logging.disable()
    with atheris.instrument_imports(include=INSTRUMENTED):
        run = importlib.import_module(f"fuzz_{name}").run

    def one(data: bytes) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        run(data)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown > GROWTH_MAX_KIB:
            raise MemoryError(f"{grown} KiB of memory for one input")

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
