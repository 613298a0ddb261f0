"""Limits of a scenario. The modules that declare commands import this module, so it imports nothing slow."""

MAX_SEEDS = 100_000
"""Maximum number of seeds of a sweep."""
MAX_SEED = 2**63 - 1
"""Highest seed."""
