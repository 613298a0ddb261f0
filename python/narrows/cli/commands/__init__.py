"""Declarations of the commands whose work needs slow imports.

Each module in this package holds the parameters and the help of a command, and imports only what `--help`
and tab completion need. The body of a command imports a module of `narrows.cli` and calls a function of that
module. The module is therefore imported only when the command runs.
"""
