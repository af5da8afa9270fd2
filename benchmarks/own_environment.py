"""Environments of their own, for packages that cannot be installed beside moew's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def in_cache(name: str) -> Path:
    """The folder of an environment in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moew" / name


def python_with(requirements: Sequence[str], folder: Path) -> Path:
    """The Python of an environment with these packages, made where it is not there yet."""
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"making an environment with {', '.join(requirements)} in {folder} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        ready.touch()
    return python
