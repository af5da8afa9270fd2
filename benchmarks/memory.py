"""Peak resident memory of a full MNIST search on the CPU: 784-50-10, 55,000 rows, B = 10, K = 20.

    python benchmarks/memory.py [--steps 200] [--batches 10]

The search runs in a fresh process, which reports its peak. What it needs hardly depends on the number of
steps: the mini-batches' rows are 4 bytes × 100 for each step (4 MB at the paper's 10,000), so few steps do.
The rows are those of the folder MOEW_DATA (mnist/train-*-ubyte.gz), or made up where it is not set; the
pixels are divided by 255, and the first 5,000 rows are the validation rows, as in the authors' script.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

AUTHORS_MB = 1049  # the authors' script
N_ROWS, N_PIXELS, N_VALIDATION = 60_000, 784, 5_000


def digits() -> tuple[np.ndarray, np.ndarray, str]:
    """Pixels (60000, 784) uint8, labels (60000,) and where they are from."""
    if folder := os.environ.get("MOEW_DATA"):
        with gzip.open(Path(folder) / "mnist" / "train-images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, N_PIXELS)
        with gzip.open(Path(folder) / "mnist" / "train-labels-idx1-ubyte.gz") as file:
            return pixels, np.frombuffer(file.read(), np.uint8, offset=8).astype(int), "MNIST"
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (N_ROWS, N_PIXELS), dtype=np.uint8)
    for row in pixels:
        row[rng.random(N_PIXELS, dtype=np.float32) < 0.8] = 0
    return pixels, rng.integers(0, 10, N_ROWS), "made-up rows"


def peak_mb() -> float:
    """Peak resident memory of this process in MB (10⁶ bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def search(steps: int, n_batches: int) -> None:
    """The whole search in this process."""
    from paper_way import PAPER

    from moew import MetricSearch
    from moew.metrics import worst_class_error
    from moew.models.networks import NetworkClassifier

    pixels, y, source = digits()
    X = pixels.astype(np.float32)
    del pixels
    X /= 255
    print(f"{source}; with moew and the rows loaded: {peak_mb():.0f} MB", flush=True)
    start = time.perf_counter()
    fitted = MetricSearch.from_settings(
        NetworkClassifier((50,), loss="sigmoid_cross_entropy", steps=steps, scale=False),
        metric=worst_class_error(),
        embedding="label",
        n_candidates=20 * n_batches,
        batch_size=20,
        radius=3.0,
        **PAPER,
        random_state=0,
    ).fit(X[N_VALIDATION:], y[N_VALIDATION:], validation=(X[:N_VALIDATION], y[:N_VALIDATION]))
    seconds = time.perf_counter() - start
    print(f"{len(fitted.result_.trials)} candidates, {steps} steps each, {seconds:.0f} s")
    peak = peak_mb()
    verdict = "below" if peak < AUTHORS_MB else "NOT below"
    print(f"peak resident memory {peak:.0f} MB, {verdict} the authors' {AUTHORS_MB} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.in_this_process:
        search(given.steps, given.batches)
        return
    command = [sys.executable, __file__, "--in-this-process"]
    command += ["--steps", str(given.steps), "--batches", str(given.batches)]
    subprocess.run(command, check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})


if __name__ == "__main__":
    main()
