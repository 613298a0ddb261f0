"""Exports results in the formats of other tools.

| module | format | tool |
| --- | --- | --- |
| `perfetto` | Trace Event JSON, compressed | the Perfetto UI: flows and links as tracks |
| `flent` | `.flent.gz` | flent and flent-gui |
| `qlog` | `.sqlog`, one file per TCP flow | qvis |

Each module has a function `files`, which returns the files of one run as a mapping from names to bytes.
"""
