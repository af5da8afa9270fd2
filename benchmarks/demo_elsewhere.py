"""The comparison of `make demo` where less is to be gained: `python benchmarks/demo_elsewhere.py`.

Other settings of the same problem, on the same splits. docs/demo.md has the tables.
"""

from __future__ import annotations

import argparse

import checkout  # noqa: F401  # finds experiments/, beside this folder

from experiments.digits import DEMO, REPEATS, Setting, run_repeats, table

SETTINGS = {
    "As in the demo": DEMO,
    "No digit is rare among the training rows": Setting(kept=1.0),
    "The model is hardly regularised (C = 1,000)": Setting(C=1_000.0),
    "All 8 × 8 pixels": Setting(coarse=False),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=REPEATS)
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    for name, setting in SETTINGS.items():
        print(f"{name}\n\n{table(run_repeats(given.repeats, given.jobs, setting=setting))}\n", flush=True)


if __name__ == "__main__":
    main()
