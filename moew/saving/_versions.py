"""The versions of the libraries that a model was saved with."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from moew.exceptions import MoewWarning, StateError

# Packages that may matter to a model, and their modules.
_PACKAGES = {
    "moew": "moew",
    "scikit-learn": "sklearn",
    "numpy": "numpy",
    "jax": "jax",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "xgboost-cpu": "xgboost",
    "skops": "skops",
}


def versions(loaded_only: bool = False) -> dict[str, str]:
    """The versions of Python and of the packages that are installed, or loaded, and may matter to a model."""
    found = {"python": platform.python_version()}
    for package, module in _PACKAGES.items():
        if loaded_only and module not in sys.modules:
            continue
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def warn_of_other_versions(path: Any, saved: Mapping[str, str]) -> None:
    """Give a warning that names the versions that differ from those of this process."""
    here = versions()
    if not isinstance(saved, dict) or not all(isinstance(text, str) for text in saved.values()):
        raise StateError("its versions are no texts.")
    other = [
        f"{name} {saved[name]} (here {here.get(name, 'none')})"
        for name in saved
        if saved[name] != here.get(name)
    ]
    if other:
        warnings.warn(
            f"{path} was saved with {', '.join(other)}: its predictions may differ, or it may not load.",
            MoewWarning,
            stacklevel=3,
        )
