"""Scenarios: the file format, topologies by name, sweeps, and the plan that a backend runs."""
