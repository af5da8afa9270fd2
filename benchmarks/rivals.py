"""How moew does against what people do today, on the problems of benchmarks/one_kind_problems.py.

    python benchmarks/rivals.py run --problems development --splits 20 --jobs 2
    python benchmarks/rivals.py table --problems untouched --page docs/rivals.md

How they are run is in benchmarks/problem_runs.py. A searched rival may use as many seconds of fitting as
moew used on the same problem and split, and tries 20 candidates at least; the methods are in
benchmarks/rivals_methods.py. `table` prints tables in Markdown and draws rivals.png;
benchmarks/compared_methods.py says how they are computed. With `--page` they also replace those at the end of
a page.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one process per core does the work
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import math

import numpy as np
from compared_methods import Results, over_problems
from problem_runs import Benchmark, read_lines
from rivals_methods import ASKED, METHODS, methods_for, run_methods
from rivals_tables import tables

BENCHMARK = Benchmark("rivals", "one_kind_problems", METHODS, tuple(ASKED), methods_for, run_methods, tables)


def again(options: argparse.Namespace) -> None:
    """Print what a later version of moew reaches, beside the recorded one on the same splits."""
    before, now = (read_lines(options.out / name) for name in ("results.csv", "again.csv"))
    recorded = Results(before)
    keys = [key for key in now if key in before]
    rest = {key: line for key, line in before.items() if key[2] in ("unweighted", "achievable")}
    both = [Results({**rest, **{key: lines[key] for key in keys}}) for lines in (before, now)]
    problems = list(dict.fromkeys(key[0] for key in keys))
    clear = [name for name in problems if not math.isnan(recorded.share(name, "moew"))]
    shares = np.array([[results.share(name, "moew") for results in both] for name in clear])
    print("| problem | splits | share of the achievable gain before | now |\n|---|---|---|---|")
    for name, (old, new) in zip(clear, shares, strict=True):
        print(f"| {name} | {sum(key[0] == name for key in keys)} | {old:.0%} | {new:.0%} |")
    (old, _), (new, _) = (over_problems(column) for column in shares.T)
    lead, margin = over_problems(shares[:, 1] - shares[:, 0])
    bias = [np.nanmean([results.honest_bias(name, "moew") for name in problems]) for results in both]
    print(
        f"\nmean share {old:.0%} before and {new:.0%} now, a difference of {lead:+.0%} ± {margin:.0%} over "
        f"{len(clear)} problems; honest − test {bias[0]:+.2f} of its spread before and {bias[1]:+.2f} now, "
        f"over {len(problems)}."
    )


if __name__ == "__main__":
    BENCHMARK.main(__doc__, again=(again, "compare moew in again.csv with that in results.csv"))
