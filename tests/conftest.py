"""One thread for each worker: the tests' matrices are too small to share, and the workers share the cores.

Hypothesis does not mind a slow machine.
"""

import os

from hypothesis import HealthCheck, settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("moew", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("moew")
