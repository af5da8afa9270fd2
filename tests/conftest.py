"""One thread for each worker: the tests' matrices are too small to share, and the workers share the cores.

Compiled networks are kept in `.jax_cache`, for the next run and for the processes that tests start.
Hypothesis does not mind a slow machine; `--hypothesis-profile=thorough` takes four times the examples.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".jax_cache"))
for name in ("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"):
    os.environ.setdefault(name, "0")

settings.register_profile(
    "quick", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=100)
settings.load_profile("quick")


@pytest.fixture
def real_data(monkeypatch):
    """Loaders find the real data beside the checkout, unless MOEW_DATA names a folder."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not os.environ.get("MOEW_DATA") and beside.is_dir():
        monkeypatch.setenv("MOEW_DATA", str(beside))


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The test runs in an empty folder, and what it imports from there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
