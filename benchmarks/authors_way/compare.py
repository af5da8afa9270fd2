"""A training step of K models: moew against the authors' way, TensorFlow's graph mode.

    python benchmarks/authors_way/compare.py [--cases crime wine mnist] [--repetitions 5]

TensorFlow 2.15 needs NumPy below 2, so the benchmark makes an environment for it, once, in a folder of the
user's cache (`--environment` names another), and sends it its orders. Both sides take turns, on made-up data
of the paper's sizes.

moew's time is that of a whole batch of candidates divided by its steps, `fit_many` at the paper's 10,000:
the embedding of all rows, the K weightings, the encoding of the rows, the drawing of the mini-batches,
training and the fitted models; only the compilation, which happens once, is printed beside it. TensorFlow's
time is that of the steps alone, see tensorflow_side.py, after some to warm up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import jax
import joblib
import numpy as np
from cases import CASES, Case, alphas_of, encoder_of, features_and_labels

sys.path.append(str(Path(__file__).parents[1]))

from own_environment import in_cache, python_with

from moew.embedding import FunctionEmbedding
from moew.models.networks import NetworkClassifier, NetworkRegressor
from moew.weighting import ExampleWeighting, UniformBaseWeights

REQUIREMENTS = ("tensorflow-cpu==2.15.*", "numpy<2", "pandas")
HERE = Path(__file__).parent
WARM_UP_STEPS = 50


class TensorFlowSide:
    """The other process."""

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [python, HERE / "tensorflow_side.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.versions = self._answer()

    def seconds(self, case: Case, steps: int) -> float:
        """How long so many steps take."""
        self.process.stdin.write(json.dumps({"case": case.name, "steps": steps}) + "\n")
        self.process.stdin.flush()
        return self._answer()["seconds"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the TensorFlow process ended; its error stands above.")
        return json.loads(line)


class MoewSide:
    """The same models in moew."""

    def __init__(self, case: Case, steps: int) -> None:
        self.case = case
        self.X, self.y = features_and_labels(case)
        self.alphas = alphas_of(case)
        self.encoder = encoder_of(case)
        self.task = "regression" if case.loss == "squared" else "classification"
        make = NetworkRegressor if self.task == "regression" else NetworkClassifier
        self.network = make(
            case.sizes[1:-1], "sigmoid", case.loss, steps=steps, batch_size=case.batch_size, random_state=0
        )

    def seconds(self) -> float:
        """How long a whole batch of K candidates takes."""
        start = time.perf_counter()
        embedding = FunctionEmbedding(self._embed, standardize=False)
        weighting = ExampleWeighting(embedding, UniformBaseWeights()).fit(self.X, self.y, task=self.task)
        weights = weighting.training_weights(self.alphas)
        for _, model in self.network.fit_many(self.X, self.y, weights, list(range(len(weights)))):
            if isinstance(model, Exception):
                raise model
        return time.perf_counter() - start

    def _embed(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not self.encoder:
            return np.eye(self.case.n_dims, dtype=np.float32)[y]
        layer = np.column_stack([X, y])
        for W, b in self.encoder:
            layer = 1 / (1 + np.exp(-(layer @ W + b)))
        return layer


def compare(case: Case, theirs: TensorFlowSide, repetitions: int, their_steps: int, steps: int) -> None:
    """Time both sides in turn and print the medians."""
    ours = MoewSide(case, steps)
    theirs.seconds(case, WARM_UP_STEPS)
    first = ours.seconds()
    ours_ms, theirs_ms = [], []
    for _ in range(repetitions):
        theirs_ms.append(1e3 * theirs.seconds(case, their_steps) / their_steps)
        ours_ms.append(1e3 * ours.seconds() / steps)
    a, b = statistics.median(theirs_ms), statistics.median(ours_ms)
    low, high = case.authors_ms
    table = f"{low:g}" if low == high else f"{low:g}–{high:g}"
    print(
        f"\n{case.name}: {'-'.join(map(str, case.sizes))}, batch {case.batch_size}, K = {case.n_models}, "
        f"{case.n_rows:,} rows; load {os.getloadavg()[0]:.1f}"
    )
    print(f"  TensorFlow, the authors' way {_spread(theirs_ms)}   (the authors' scripts: {table} ms)")
    compiling = max(0.0, first - b * steps / 1e3)
    print(f"  moew, whole batch / {steps:<6,}   {_spread(ours_ms)}   (compiling: {compiling:.1f} s)")
    verdict = "reached" if a / b >= case.times_faster else "missed"
    print(f"  moew is {a / b:.1f} times as fast (at least {case.times_faster:g}: {verdict})", flush=True)


def _spread(ms: list[float]) -> str:
    return f"{statistics.median(ms):9.4f} ms a step, {min(ms):.4f} to {max(ms):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--tensorflow-steps", type=int, default=300, help="in each repetition")
    parser.add_argument("--steps", type=int, default=10_000, help="of moew, in each repetition")
    parser.add_argument("--environment", type=Path, default=in_cache("tensorflow-2.15"))
    given = parser.parse_args()
    theirs = TensorFlowSide(python_with(REQUIREMENTS, given.environment))
    versions = ", ".join(f"{name} {version}" for name, version in theirs.versions.items())
    print(f"jax {jax.__version__} on {jax.default_backend()}, NumPy {np.__version__}; there: {versions}")
    print(f"{joblib.cpu_count()} cores; median of {given.repetitions} interleaved runs, least and most")
    for name in given.cases:
        compare(CASES[name], theirs, given.repetitions, given.tensorflow_steps, given.steps)
    theirs.close()


if __name__ == "__main__":
    main()
