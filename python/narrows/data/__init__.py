"""Recorded traces: which data sets exist, where they are stored, and how to download them."""
