"""Fixtures and a backend without a simulator."""

from __future__ import annotations

import json
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from narrows import playground
from narrows.cli import main as cli
from narrows.errors import ScenarioError

# Hypothesis draws the same examples in each run, so that failures are reproducible. The option
# --hypothesis-profile=default draws other examples.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")

# A background job ignores SIGINT, and its child processes inherit this. Some tests send SIGINT to a child.
# Therefore, restore the default handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


ROOT = Path(__file__).resolve().parents[2]
LONGEST = (
    "test_wheel.py",
    "test_crates.py",
    "test_quic_programs_guest.py",
    "test_site.py",
    "test_tutorials.py",
    "test_object_store.py",
)
"""Files with the longest tests. These tests build programs, boot guests or start servers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests. Otherwise, a worker would still run them after the others have ended."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture
def agent_binary():
    """The binary that `make agent` builds."""
    binary = ROOT / "target/release/narrows-agent"
    if not binary.exists():
        line = "found no target/release/narrows-agent: make agent"
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail(f"NARROWS_REQUIRE_KERNEL=1, but {line}")
        pytest.skip(line)
    return binary


@pytest.fixture(scope="session")
def built() -> Path:
    """The page of the playground that `make web` builds."""
    path = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "web" / playground.PAGE.name
    if not path.exists():
        message = f"found no {path}: make web; the playground was not tested"
        warnings.warn(message, stacklevel=2)
        pytest.skip(message)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium. Skips the test without it."""
    from test_browser import chromium

    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        if os.environ.get("NARROWS_REQUIRE_BROWSER") == "1":
            raise
        pytest.skip("playwright is not installed; the page was not tested")
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield instance
        instance.close()


class FakeBackend:
    """Does not simulate. Computes the figures of a run from the plan and the seed."""

    name = "fake"
    most_jobs = None

    def __init__(self, fail_seed: int | None = None) -> None:
        self.plans: list[dict] = []
        self.cancelled = threading.Event()
        self.fail_seed = fail_seed

    def facts(self):
        return {}

    def check(self, plan):
        json.dumps(plan, allow_nan=False)

    def run(self, plan):
        self.plans.append(plan)
        if plan["seed"] == self.fail_seed:
            raise ScenarioError("refused")
        n, links = len(plan["flows"]), plan["links"]
        nan = np.full(n, np.nan)
        flows = {
            "flow": np.arange(n, dtype=np.uint32),
            "name": [flow["name"] for flow in plan["flows"]],
            "source": [flow["name"] for flow in plan["flows"]],
            "cc": [flow["transport"].get("cc", "udp") for flow in plan["flows"]],
            "delivered_bytes": 1000 * np.arange(1, n + 1, dtype=np.uint64),
            "goodput_bps": 1e6 * (np.arange(n) + 1.0) + plan["seed"],
            "rtt_mean_s": np.full(n, 0.03),
            "rtt_p95_s": np.full(n, 0.04),
            "retransmits": np.arange(n, dtype=np.uint64),
            "fct_s": nan,
        }
        m = len(links)
        return {
            "flows": flows,
            "links": {
                "link": np.arange(m, dtype=np.uint32),
                "name": [link["name"] for link in links],
                "utilisation": np.full(m, 0.9),
                "sojourn_mean_s": np.full(m, 0.01),
                "sojourn_p95_s": np.full(m, 0.02),
                "dropped_packets": np.zeros(m, dtype=np.uint64),
                "marks": np.zeros(m, dtype=np.uint64),
            },
            "run": {"events": 10, "packet_hops": 20},
        }

    def cancel(self) -> None:
        self.cancelled.set()

    def congestion_controllers(self):
        return [("reno", "r"), ("cubic", "c"), ("bbr", "b"), ("brf", "f")]

    def rate_controllers(self):
        return [("bdr", "d"), ("brf", "f"), ("pacec", "p"), ("rcp", "r")]


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def narrows(monkeypatch, capsys):
    """Runs the command, and returns exit code, output and errors."""

    def call(*args):
        monkeypatch.setattr("sys.argv", ["narrows", *map(str, args)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return call
