"""The file of a bandwidth model (docs/reference/bandwidth-model.md), and the options of its training.

The Rust module `rate/brf/predictor/read.rs` reads the file. tests/python/test_bandwidth_model.py compares the
limits below with the limits of the Rust module.
"""

from __future__ import annotations

from dataclasses import dataclass

FORMAT = "narrows-bandwidth-model"
VERSION = 1
FEATURES = (
    "source_high",
    "source_low",
    "destination_high",
    "destination_low",
    "ip_version",
    "service",
    "protocol",
    "second_of_day",
)
"""The features of a flow, in the order of `narrows_control::rate::kit::features::NAMES`."""
TREES_MAX = 128
DEPTH_MAX = 8
LENGTH_MAX = 256 << 10
"""Maximum length of the file in bytes."""


@dataclass(frozen=True)
class Options:
    """The options of a training."""

    trees: int = 32
    depth: int = 4
    quantile: float = 0.9
    """Share of flows whose bandwidth should be at most the predicted bandwidth."""
