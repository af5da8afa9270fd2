"""Ask BoTorch, in a process with an environment of its own, for batches of alphas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import numpy as np
from own_environment import in_cache, python_with

from moew.types import FloatArray

# The build of PyTorch without a GPU's libraries is enough; another version would fetch gigabytes.
REQUIREMENTS = ("torch==2.13.0", "botorch==0.18.*")
HERE = Path(__file__).parent


class BoTorchSide:
    """The other process."""

    def __init__(self) -> None:
        python = python_with(REQUIREMENTS, in_cache("botorch-0.18"))
        self.process = subprocess.Popen(
            [python, HERE / "botorch_side.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> BoTorchSide:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def propose(
        self, alphas: FloatArray, scores: FloatArray, batch: int, *, radius: float, k: int, seed: int
    ) -> FloatArray:
        """The next k alphas (k, d), given known ones (n, d) and their scores (n,)."""
        asked = {
            "alphas": alphas.tolist(),
            "scores": scores.tolist(),
            "radius": radius,
            "k": k,
            "seed": 1000 * seed + batch,
        }
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the BoTorch process ended; its error stands above.")
        return np.array(json.loads(line))
