"""Datasets store the tables of a sweep as hive-partitioned Parquet, at any URL that fsspec supports.

URL/metadata.json                                   version, scenario, runs; at the end also the segments
URL/<table>/<factor>=<value>/.../<segment>.parquet  a table of the runs of a segment
URL/runs/<factor>=<value>/.../<segment>.parquet     written last, as the mark of a complete segment
URL/timing.csv                                      wall times, which differ between identical sweeps

Object stores support neither locks nor renaming. Each object is therefore written in one step, and readers
use only segments whose table of runs exists. A segment's name depends only on its sweep and on its runs. If a
batch runs a second time, the new objects replace equal objects of the same names.
"""
