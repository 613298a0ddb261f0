"""Datasets: the tables of a sweep as hive-partitioned Parquet, at any URL that fsspec knows.

URL/metadata.json                                   version, scenario, runs; at the end also the segments
URL/<table>/<factor>=<value>/.../<segment>.parquet  a table of the runs of a segment
URL/runs/<factor>=<value>/.../<segment>.parquet     written last: it makes the segment count
URL/timing.csv                                      wall times, which differ between identical sweeps

Object stores have neither locks nor renaming. Each object therefore appears at once, and readers use only
segments whose table of runs exists. A segment's name depends only on its sweep and on its runs. A worker that
repeats a batch thus replaces objects by equal objects.
"""
