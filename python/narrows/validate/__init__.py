"""Measures the simulator's errors: runs a grid of networks on both sides and compares the results.

- `grid`: networks and their scenario files.
- `runner`: runs them, and keeps finished runs.
- `measures`: figures of a cell's runs, and errors between two sides.
- `shape`: the distance between the distributions of two congestion windows, and the period of their sawtooth.
- `causes`: explanations of large errors, as data.
- `page`, `charts`: the page of the docs, and figures.
"""
