"""One thread for each worker: the tests' matrices are too small to share, and the workers share the cores.

Hypothesis does not mind a slow machine.
"""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("moew", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("moew")


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The test runs in an empty folder, and what it imports from there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
