"""Optional dependencies: the modules of each extra, and the one-line message if a module is missing."""

from __future__ import annotations

import importlib.util

from narrows.errors import NarrowsError

MODULES = {
    "controller": ("fastapi", "networkx", "os_ken", "prometheus_client", "uvicorn"),
    "data": ("pooch",),
    "gs": ("fsspec", "gcsfs"),
    "pandas": ("pandas",),
    "polars": ("polars",),
    "ray": ("ray",),
    "report": ("altair", "jinja2", "markupsafe", "vl_convert"),
    "s3": ("fsspec", "s3fs"),
    "slurm": ("submitit",),
    "topologies": ("topohub",),
    "train": ("sklearn",),
}
"""The modules that each extra of pyproject.toml installs."""


BUILD = "pip install -e ."
"""The command that builds the native module, in a clone."""


class MissingExtraError(NarrowsError, ImportError):
    """The optional dependencies of a feature are not installed.

    The error's text names the extra that has them.
    """


def no_native_module(error: ImportError) -> NarrowsError:
    """The error for a native module that cannot be imported."""
    return NarrowsError(f"found no native module ({error}); run `{BUILD}` in a clone")


def missing(extra: str) -> list[str]:
    """Modules of an extra that are not installed."""
    return [name for name in MODULES[extra] if importlib.util.find_spec(name) is None]


def remedy(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'narrows[{extra}]'"


def require(extra: str, feature: str) -> None:
    """Raise an error if a module of an extra is not installed.

    Args:
        extra: one of `MODULES`.
        feature: the name of the command or function, which begins the message.

    Raises:
        MissingExtraError: with the modules and the command that installs them.
    """
    if lacking := missing(extra):
        raise MissingExtraError(f"{feature}: {', '.join(lacking)} not installed; try: {remedy(extra)}")


def explain(error: ImportError) -> str | None:
    """The message about the native module, or a module of an extra, that cannot be imported.

    None for any other module.
    """
    if "_native" in str(error):
        return str(no_native_module(error))
    top = (error.name or "").split(".")[0]
    for extra, modules in MODULES.items():
        if top in modules:
            return f"{top} is not installed; try: {remedy(extra)}"
    return None
