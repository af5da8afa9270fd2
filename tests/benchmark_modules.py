"""Modules of benchmarks/ for tests: without their folder on the path, or their environment, afterwards."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@contextmanager
def importable() -> Iterator[None]:
    """Modules of benchmarks/ can be imported; a benchmark sets the numbers of threads for itself alone."""
    path, environment = list(sys.path), dict(os.environ)
    sys.path.append(str(BENCHMARKS))
    try:
        yield
    finally:
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
