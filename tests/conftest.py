"""One thread for each worker: the tests' matrices are too small to share, and the workers share the cores."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
