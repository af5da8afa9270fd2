"""Ask BoTorch, in a process with an environment of its own, for batches of alphas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import numpy as np

from moew.types import FloatArray

# The build of PyTorch without a GPU's libraries is enough; another version would fetch gigabytes.
REQUIREMENTS = ("torch==2.13.0", "botorch==0.18.*")
HERE = Path(__file__).parent


class BoTorchSide:
    """The other process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [environment(), HERE / "botorch_side.py"],
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


def environment() -> Path:
    """The Python of an environment with BoTorch, made in the user's cache where it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "moew" / "botorch-0.18"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"making an environment with {', '.join(REQUIREMENTS)} in {folder} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        for requirement in REQUIREMENTS:  # the pinned PyTorch first
            subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True)
        ready.touch()
    return python
