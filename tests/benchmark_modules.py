"""Modules of benchmarks/ for tests: without their folder on the path, or their environment, afterwards."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

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


def load_problems() -> ModuleType:
    """benchmarks/problems.py, whose name tests/problems.py has too."""
    spec = importlib.util.spec_from_file_location("benchmark_problems", BENCHMARKS / "problems.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
