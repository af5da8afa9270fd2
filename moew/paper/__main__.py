"""`python -m moew.paper NAME`: an experiment of the paper."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from moew.paper._experiment import Options
from moew.paper._searches import OutOfTimeError

EXPERIMENTS = ("mnist", "spam", "pages")


def main(arguments: list[str] | None = None) -> int:
    """Run one experiment; the exit status is 3 where the time given was not enough."""
    parser = argparse.ArgumentParser(prog="python -m moew.paper", description=__doc__)
    parser.add_argument("name", choices=EXPERIMENTS)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "gpu"))
    parser.add_argument("--precision", choices=("float32", "tf32", "bfloat16"), default="float32")
    parser.add_argument("--steps", type=int, default=10_000, help="of training each network (default 10,000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that propose candidates")
    parser.add_argument("--minutes", type=float, help="stop cleanly after so many; run again to go on")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder (default out/)")
    given: Any = parser.parse_args(arguments)
    if given.repeats < 2:
        parser.error("an error margin needs at least 2 repeats")
    options = Options(
        given.repeats,
        given.seed,
        given.device,
        given.precision,
        given.out,
        given.steps,
        given.jobs,
        given.minutes,
    )
    experiment = importlib.import_module(f"moew.paper.{given.name}")
    try:
        print(experiment.main(options))
    except OutOfTimeError as ended:
        print(ended, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
