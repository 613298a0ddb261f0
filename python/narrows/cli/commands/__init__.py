"""Declarations of the commands whose work needs slow imports.

A module here holds a command's parameters and help. The module imports only what `--help` and
tab completion need. The body calls the function of the same name in `narrows.cli`, which is imported when
the command runs.
"""
