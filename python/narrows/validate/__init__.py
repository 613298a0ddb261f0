"""Measures the simulator's errors: runs the same networks in the simulator and on real stacks.

- `grid`: networks and their scenario files.
- `runner`: runs them, and keeps finished runs.
- `measures`: figures of a cell's runs (a cell is one network), and the differences between simulator and real
  stacks.
- `shape`: the distance between the distributions of two congestion windows, and the period of their sawtooth.
- `causes`: reads the known explanations of large errors from a file.
- `page`, `charts`: write the page of the documentation and its figures.
"""
