"""Declarations of the commands whose work needs slow imports.

Each module in this package holds the parameters and the help of a command, and imports only what `--help`
and tab completion need. The command's body calls the function of the same name in `narrows.cli`, which is
imported only then.
"""
