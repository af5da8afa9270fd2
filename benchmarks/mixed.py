"""How moew does on problems whose training rows are of mixed origin, benchmarks/mixed_problems.py.

    python benchmarks/mixed.py run --problems development --splits 20 --jobs 2
    python benchmarks/mixed.py table --problems untouched

How they are run is in benchmarks/problem_runs.py. A searched rival may use as many seconds of fitting as
moew used on the same problem and split, and tries 20 candidates at least; the methods are in
benchmarks/mixed_methods.py, and the libraries, which get environments of their own when they are first run,
in benchmarks/mixed_libraries.py. `table` prints tables in Markdown and draws mixed.png;
benchmarks/mixed_tables.py says how they are computed.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one process per core does the work
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

from mixed_methods import ASKED, METHODS, methods_for, run_methods
from mixed_tables import tables
from problem_runs import Benchmark

BENCHMARK = Benchmark("mixed", "mixed_problems", METHODS, tuple(ASKED), methods_for, run_methods, tables)

if __name__ == "__main__":
    BENCHMARK.main(__doc__)
