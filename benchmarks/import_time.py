"""How long does `import moew` take, and what does it load? Run `python benchmarks/import_time.py`."""

from __future__ import annotations

import statistics
import subprocess
import sys

HEAVY = ("sklearn", "optuna", "jax", "torch", "matplotlib", "pandas")
CODE = f"""
import sys, time
start = time.perf_counter()
import moew
print(time.perf_counter() - start, [name for name in {HEAVY!r} if name in sys.modules])
"""


def main() -> None:
    runs = [
        subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.split(
            " ", 1
        )
        for _ in range(20)
    ]
    seconds = statistics.median(float(run[0]) for run in runs)
    print(f"import moew: {1000 * seconds:.1f} ms (median of {len(runs)} processes; the limit is 200 ms)")
    print(f"heavy modules it loads: {runs[0][1].strip()}")


if __name__ == "__main__":
    main()
